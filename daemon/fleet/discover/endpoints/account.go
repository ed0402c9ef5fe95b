package endpoints

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/direct"
)

// InCluster is where kubelet puts a pod's service account: token, ca.crt and namespace.
const InCluster = "/var/run/secrets/kubernetes.io/serviceaccount"

// Service names the endpoints to follow.
type Service struct {
	Name      string // of the service; "" = none, or those of Selector
	Selector  string // of the EndpointSlices' labels, in place of Name
	Namespace string // "" = the account's
	Port      string // name or number; "" = the first of each slice
	API       string // "" = from the environment of the pod
	Account   string // folder; "" = InCluster
}

func (s Service) isNone() bool { return s.Name == "" && s.Selector == "" }

// labels returns the label selector of the slices.
func (s Service) labels() string {
	if s.Selector != "" {
		return s.Selector
	}
	return "kubernetes.io/service-name=" + s.Name
}

// maxSecret bounds the files of an account.
const maxSecret = 1 << 20

// read returns a file of the account.
func (s Service) read(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(cmp.Or(s.Account, InCluster), name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret))
	return bytes.TrimSpace(data), err
}

// base returns the URL of the service's EndpointSlices.
func (s Service) base() (string, error) {
	api := s.API
	if api == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return "", errors.New("endpoints: KUBERNETES_SERVICE_HOST and _PORT are not set: this is no pod of a cluster; " +
				`set api, as "http://127.0.0.1:8001" of kubectl proxy`)
		}
		api = "https://" + net.JoinHostPort(host, port)
	}
	namespace := s.Namespace
	if namespace == "" {
		told, err := s.read("namespace")
		if err != nil || len(told) == 0 {
			return "", fmt.Errorf("endpoints: the account tells no namespace; set namespace: %w", cmp.Or(err, errEmpty))
		}
		namespace = string(told)
	}
	return strings.TrimRight(api, "/") +
		"/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices", nil
}

var errEmpty = errors.New("the file is empty")

// apiServer makes requests to the API server. It is safe for concurrent use.
type apiServer struct {
	mu     sync.Mutex // guards all below
	ca     []byte
	client *http.Client
}

// Timeouts of a connection. A server that is gone without a word is found after idle and 3 probes.
const (
	dialTimeout  = 5 * time.Second
	keepIdle     = 15 * time.Second
	keepInterval = 5 * time.Second
	keepCount    = 3
	headTimeout  = 10 * time.Second
)

// open returns a client that believes the account's authority, a new one if that has changed.
func (d *apiServer) open(s Service) (*http.Client, error) {
	ca, err := s.read("ca.crt")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a proxy, or an authority of the system
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil && bytes.Equal(ca, d.ca) {
		return d.client, nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if len(ca) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("endpoints: ca.crt of the account has no certificate in PEM")
		}
	}
	if d.client != nil {
		d.client.CloseIdleConnections()
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle,
		Interval: keepInterval, Count: keepCount}}
	d.ca = ca
	d.client = direct.Client(&http.Transport{DialContext: dialer.DialContext, TLSClientConfig: trust,
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: headTimeout, MaxIdleConnsPerHost: 1}, 0)
	return d.client, nil
}
