// Package sagemaker is the SageMaker runtime API on the wire.
package sagemaker
