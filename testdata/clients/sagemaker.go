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
	"github.com/aws/aws-sdk-go-v2/service/sagemakerruntime"
	"github.com/aws/aws-sdk-go-v2/service/sagemakerruntime/types"
	"github.com/aws/smithy-go"
)

const (
	hello     = `{"messages":[{"role":"user","content":"hi"}],"max_tokens":8}`
	helloSSE  = `{"messages":[{"role":"user","content":"hi"}],"max_tokens":8,"stream":true}`
	opening   = `{"requestType":"NEW_SESSION"}`
	closing   = `{"requestType":"CLOSE"}`
	forAWhile = `{"messages":[{"role":"user","content":"hi"}],"max_tokens":100000}`
)

// awsClient is Go's SDK against the router, as an application has it but for the keys and the repeats.
type awsClient struct {
	*sagemakerruntime.Client
	f *fleet
	// broken counts streams that the SDK itself broke: in 6 to 15 % of those whose head comes at once it closes the
	// request's body early, which net/http takes for a failed write (sagemakerruntime v1.50.2, smithy-go v1.28.8).
	broken int
}

func sagemakerChecks(ctx context.Context, f *fleet, t *total) error {
	runMemory(ctx, f, t) // first: a router that has passed 100 MB on has grown already
	c := &awsClient{f: f, Client: sagemakerruntime.New(sagemakerruntime.Options{
		BaseEndpoint: aws.String(f.url), Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
		}),
	})}
	runChecks(ctx, "go sagemaker", t, []check{
		{"create, use, close", c.life}, {"router keeps the session", c.routers}, {"unknown", c.unknown}, {"expired",
			c.expired},
		{"stream", c.stream}, {"stream exception", c.exception}, {"424", c.modelError}, {"429", c.notReady}, {"503",
			c.unavailable},
		{"opening fails", c.openingFails}, {"payload sent once", c.payload}, {"worker dies", c.dies}, {"nothing left bound",
			c.left},
	})
	fmt.Printf("   go sagemaker: %d streams repeated, which the SDK broke itself\n", c.broken)
	return nil
}

// invoke sends a body, in a session if there is one.
func (c *awsClient) invoke(ctx context.Context, endpoint, session,
	body string) (*sagemakerruntime.InvokeEndpointOutput, error) {
	in := &sagemakerruntime.InvokeEndpointInput{EndpointName: &endpoint, ContentType: aws.String("application/json"),
		Body: []byte(body)}
	if session != "" {
		in.SessionId = &session
	}
	return c.InvokeEndpoint(ctx, in)
}

// open opens a session and returns its id and end.
func (c *awsClient) open(ctx context.Context, endpoint, body string) (string, time.Time, error) {
	out, err := c.invoke(ctx, endpoint, "NEW_SESSION", body)
	if err != nil {
		return "", time.Time{}, err
	}
	id, end, ok := strings.Cut(aws.ToString(out.NewSessionId), "; Expires=")
	if !ok || id == "" {
		return "", time.Time{}, fmt.Errorf("NewSessionId is %q", aws.ToString(out.NewSessionId))
	}
	at, err := time.Parse("2006-01-02T15:04:05Z", end)
	return id, at, err
}

func (c *awsClient) close(ctx context.Context, endpoint, id, body string) error {
	out, err := c.invoke(ctx, endpoint, id, body)
	if err == nil && aws.ToString(out.ClosedSessionId) != id {
		err = fmt.Errorf("ClosedSessionId is %q, want %q", aws.ToString(out.ClosedSessionId), id)
	}
	return err
}

// refused wants an exception of this type.
func refused(err error, code, says string) error {
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code || !strings.Contains(e.ErrorMessage(), says) {
		return fmt.Errorf("got %v, want %s with %q", err, code, says)
	}
	return nil
}

func (c *awsClient) life(ctx context.Context) error {
	before, usesBefore, err := c.f.kept()
	if err != nil {
		return err
	}
	id, end, err := c.open(ctx, "lasting", opening)
	if err != nil {
		return err
	}
	if left := time.Until(end); left < 15*time.Minute || left > 20*time.Minute {
		return fmt.Errorf("the session ends in %v", left)
	}
	for range 6 {
		if _, err := c.invoke(ctx, "lasting", id, hello); err != nil {
			return err
		}
	}
	during, uses, err := c.f.kept()
	if err != nil {
		return err
	}
	if during.Sessions != before.Sessions+1 || uses[0]-usesBefore[0] != 6 && uses[1]-usesBefore[1] != 6 ||
		during.Uses != before.Uses+6 {
		return fmt.Errorf("workers: %+v %v before, %+v %v now; want a session and 6 uses more, at one of them", before,
			usesBefore, during, uses)
	}
	if err := c.close(ctx, "lasting", id, closing); err != nil {
		return err
	}
	if after, _, _ := c.f.kept(); after.Sessions != before.Sessions {
		return fmt.Errorf("%d sessions at the workers after the close", after.Sessions)
	}
	_, err = c.invoke(ctx, "lasting", id, hello)
	if err = refused(err, "ValidationError", ""); err != nil {
		return err
	}
	_, err = c.invoke(ctx, "lasting", id, closing)
	return refused(err, "ValidationError", "")
}

func (c *awsClient) routers(ctx context.Context) error {
	for _, body := range []string{opening, hello} {
		id, _, err := c.open(ctx, "plain", body)
		if err != nil {
			return err
		}
		var tags []string
		for range 4 {
			out, err := c.invoke(ctx, "plain", id, hello)
			if err != nil {
				return err
			}
			tags = append(tags, aws.ToString(out.InvokedProductionVariant))
		}
		if slices.Contains(tags, "") {
			return fmt.Errorf("variants %q", tags)
		}
		if err := c.close(ctx, "plain", id, `{"requestType":"CLOSE_SESSION"}`); err != nil {
			return err
		}
	}
	return nil
}

func (c *awsClient) unknown(ctx context.Context) error {
	for _, id := range []string{"nobody", "a b", strings.Repeat("a", 257), "-x"} {
		_, err := c.invoke(ctx, "lasting", id, hello)
		if err := refused(err, "ValidationError", ""); err != nil {
			return fmt.Errorf("id %.20q: %w", id, err)
		}
	}
	return nil
}

func (c *awsClient) expired(ctx context.Context) error {
	id, end, err := c.open(ctx, "brief", opening)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(end) + 1100*time.Millisecond): // the end is told in whole seconds
	case <-ctx.Done():
	}
	_, err = c.invoke(ctx, "brief", id, hello)
	return refused(err, "ValidationError", "")
}

// read joins the parts of a stream; a stream that the SDK broke is asked for again.
func (c *awsClient) read(ctx context.Context, endpoint, session, body string) (text string, err error) {
	in := &sagemakerruntime.InvokeEndpointWithResponseStreamInput{EndpointName: &endpoint,
		ContentType: aws.String("application/json"), Body: []byte(body)}
	if session != "" {
		in.SessionId = &session
	}
	for range 10 {
		text = ""
		out, err := c.InvokeEndpointWithResponseStream(ctx, in)
		if err == nil {
			s := out.GetStream()
			for e := range s.Events() {
				if p, ok := e.(*types.ResponseStreamMemberPayloadPart); ok {
					text += string(p.Value.Bytes)
				}
			}
			err = s.Err()
			s.Close()
			if kind := aws.ToString(out.ContentType); err == nil && !strings.HasPrefix(kind, "text/event-stream") {
				return text, fmt.Errorf("content type %q", kind)
			}
		}
		if err == nil || !strings.Contains(err.Error(), "use of closed network connection") {
			return text, err
		}
		c.broken++
	}
	return text, errors.New("the SDK broke ten streams in a row")
}

func (c *awsClient) stream(ctx context.Context) error {
	id, _, err := c.open(ctx, "lasting", opening)
	if err != nil {
		return err
	}
	for i := range 20 { // enough for the SDK to break one now and then
		session := []string{"", id}[i%2]
		text, err := c.read(ctx, "lasting", session, helloSSE)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(text, "data: {") || !strings.HasSuffix(text, "data: [DONE]\n\n") {
			return fmt.Errorf("the stream is %.300q", text)
		}
	}
	if err := c.close(ctx, "lasting", id, closing); err != nil {
		return err
	}
	_, err = c.read(ctx, "lasting", id, helloSSE)
	if err := refused(err, "ValidationError", ""); err != nil {
		return err
	}
	_, err = c.read(ctx, "lasting", "NEW_SESSION", helloSSE)
	return refused(err, "ValidationError", "NEW_SESSION")
}

// payload is a multimodal conversation: 100 MB once, then prompts that see them.
func (c *awsClient) payload(ctx context.Context) error {
	before, _, err := c.f.kept()
	if err != nil {
		return err
	}
	body := `{"requestType":"open_session","image":"` + strings.Repeat("A", 100<<20) + `"}`
	id, _, err := c.open(ctx, "lasting", body)
	if err != nil {
		return err
	}
	stored, _, err := c.f.kept()
	if err != nil || stored.Bytes-before.Bytes != int64(len(body)) {
		return fmt.Errorf("%d bytes stored, want %d (%v)", stored.Bytes-before.Bytes, len(body), err)
	}
	for turn := range 4 {
		out, err := c.invoke(ctx, "lasting", id, hello)
		if err != nil {
			return err
		}
		var a struct {
			Usage struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(out.Body, &a); err != nil || a.Usage.Prompt < 4096 || turn > 0 &&
			a.Usage.Details.Cached < 4096 {
			return fmt.Errorf("turn %d: usage %+v (%v), want the payload's 4096 tokens in the prompt, and then cached", turn,
				a.Usage, err)
		}
	}
	if err := c.close(ctx, "lasting", id, closing); err != nil {
		return err
	}
	if after, _, err := c.f.kept(); err != nil || after.Bytes != before.Bytes {
		return fmt.Errorf("%d bytes are left after the close (%v)", after.Bytes-before.Bytes, err)
	}
	return nil
}
