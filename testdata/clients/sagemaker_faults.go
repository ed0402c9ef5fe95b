package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemakerruntime/types"
	"github.com/aws/smithy-go"
)

// faulted runs f while the worker of faulty has a fault.
func (c *awsClient) faulted(ctx context.Context, mode string, f func() error) error {
	worker := c.f.variable("WARMPATH_FAULTY")
	if err := fault(ctx, worker, `{"mode":"`+mode+`"}`); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, fault(ctx, worker, `{"mode":"none"}`))
}

func (c *awsClient) exception(ctx context.Context) error {
	return c.faulted(ctx, "cut", func() error {
		text, err := c.read(ctx, "faulty", "", strings.Replace(helloSSE, "8", "400", 1))
		var e *types.ModelStreamError
		if !errors.As(err, &e) || aws.ToString(e.ErrorCode_) != "StreamBroken" {
			return fmt.Errorf("%.200q and then %v, want a ModelStreamError with StreamBroken", text, err)
		}
		return nil
	})
}

func (c *awsClient) modelError(ctx context.Context) error {
	_, err := c.invoke(ctx, "lasting", "", strings.Replace(hello, "{", `{"temperature":-1,`, 1))
	var e *types.ModelError
	if !errors.As(err, &e) || aws.ToInt32(e.OriginalStatusCode) != 400 ||
		!strings.Contains(aws.ToString(e.OriginalMessage), "temperature") {
		return fmt.Errorf("got %v, want a ModelError of the worker's 400", err)
	}
	return nil
}

func (c *awsClient) notReady(ctx context.Context) error {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.invoke(held, "busy", "", forAWhile)
	}()
	defer func() { cancel(); <-ended }()
	busy := c.f.variable("WARMPATH_BUSY")
	for {
		if s, err := statsOf(busy); err != nil || s.Running == 1 {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	_, err := c.invoke(ctx, "busy", "", hello)
	return refused(err, "ModelNotReadyException", "")
}

func (c *awsClient) unavailable(ctx context.Context) error {
	_, err := c.invoke(ctx, "down", "", hello)
	return refused(err, "ServiceUnavailable", "")
}

func (c *awsClient) openingFails(ctx context.Context) error {
	err := c.faulted(ctx, "open-error", func() error {
		_, _, err := c.open(ctx, "faulty", opening)
		return refused(err, "ModelError", "No space left")
	})
	if err != nil {
		return err
	}
	return c.faulted(ctx, "open-bare", func() error { // then the router names it
		id, _, err := c.open(ctx, "faulty", opening)
		if err != nil {
			return err
		}
		if _, err := c.invoke(ctx, "faulty", id, hello); err != nil {
			return err
		}
		return c.close(ctx, "faulty", id, closing)
	})
}

// dies kills the worker between open and use. Its sessions die with it: the application hears of it, and opens another.
func (c *awsClient) dies(ctx context.Context) error {
	id, _, err := c.open(ctx, "faulty", opening)
	if err != nil {
		return err
	}
	worker := c.f.variable("WARMPATH_FAULTY")
	_ = fault(ctx, worker, `{"mode":"die","seconds":1}`) // it gives no answer to that
	_, err = c.invoke(ctx, "faulty", id, hello)
	var e smithy.APIError
	if !errors.As(err, &e) || !slices.Contains([]string{"ValidationError", "ModelError", "ServiceUnavailable"},
		e.ErrorCode()) {
		return fmt.Errorf("used at a dead worker: %v", err)
	}
	another := ""
	for {
		another, _, err = c.open(ctx, "faulty", opening)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the worker is back, and opens none: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	_, err = c.invoke(ctx, "faulty", id, hello)
	if !errors.As(err, &e) || !slices.Contains([]string{"ValidationError", "ModelError"}, e.ErrorCode()) {
		return fmt.Errorf("used when the worker is back: %v", err)
	}
	return c.close(ctx, "faulty", another, closing)
}

// left looks for sessions that the router still holds, after what has ended or failed.
func (c *awsClient) left(ctx context.Context) error {
	text, err := send(ctx, "GET", c.f.admin+"/api/v1/sessions", "")
	if err != nil {
		return err
	}
	var pools []struct {
		Pool     string
		Sessions []struct{ Kind, Created string }
	}
	if err := json.Unmarshal([]byte(text), &pools); err != nil || len(pools) == 0 {
		return fmt.Errorf("%.300s: %w", text, err)
	}
	for _, p := range pools {
		if len(p.Sessions) > 0 {
			err = errors.Join(err, fmt.Errorf("%s has %+v", p.Pool, p.Sessions))
		}
	}
	return err
}
