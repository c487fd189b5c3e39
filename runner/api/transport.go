package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// NoDaemonError means that nobody answers at the socket.
type NoDaemonError struct {
	Socket string
	Err    error
}

func (e *NoDaemonError) Error() string {
	text := "no carma daemon at " + e.Socket
	if cause, ok := errors.AsType[*url.Error](e.Err); ok && e.Remote() {
		text += ": " + cause.Err.Error()
	}
	return text
}

// Remote reports whether the daemon is reached over TLS.
func (e *NoDaemonError) Remote() bool { return strings.HasPrefix(e.Socket, "https://") }

func (e *NoDaemonError) Unwrap() error { return e.Err }

// Reached reports whether the connection was made, so that the request may have had an
// effect although no answer arrived.
func (e *NoDaemonError) Reached() bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	return (!errors.As(e.Err, &op) || op.Op != "dial") && !errors.As(e.Err, &certificate)
}

// StatusError is an answer of the daemon that is not a success.
type StatusError struct {
	Status int
	Detail string
	// Stopping is set if the daemon is about to end.
	Stopping bool
}

func (e *StatusError) Error() string { return e.Detail }

// Usage reports whether the request itself was wrong, so that repeating it does not help.
func (e *StatusError) Usage() bool { return e.Status >= 400 && e.Status < 500 }

// read decodes an answer. what is the request's name in errors.
func read[A any](c *Client, resp *http.Response, what string) (answer A, err error) {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return answer, nil
	}
	if err := jsonv2.UnmarshalRead(resp.Body, &answer, jsonv1.FormatDurationAsNano(true)); errors.Is(err, io.ErrUnexpectedEOF) {
		return answer, &NoDaemonError{Socket: c.socket, Err: err}
	} else if err != nil {
		return answer, fmt.Errorf("answer to %s: %w", what, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is reused
	return answer, nil
}

// The time for which a request waits for the next daemon if one is stopping, and the
// pause between two tries.
const (
	waitStopping  = 20 * time.Second
	pauseStopping = 300 * time.Millisecond
)

func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	resp, err := c.once(ctx, method, path, body)
	if status, ok := errors.AsType[*StatusError](err); method != http.MethodGet || !ok || !status.Stopping {
		return resp, err
	}
	if c.Stopping != nil {
		c.Stopping()
	}
	for until := time.Now().Add(waitStopping); time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pauseStopping):
		}
		resp, again := c.once(ctx, method, path, body)
		_, none := errors.AsType[*NoDaemonError](again)
		status, refused := errors.AsType[*StatusError](again)
		if !none && !(refused && status.Stopping) {
			return resp, again
		}
	}
	return nil, err
}

// once makes one request.
func (c *Client) once(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if names, ok := body.(interface{ images() []string }); ok && c.Registries != nil && !c.remote {
		value, err := EncodeRegistryAuth(c.Registries(names.images()))
		if err != nil {
			return nil, err
		}
		if value != "" {
			req.Header.Set(RegistryAuthHeader, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &NoDaemonError{Socket: c.socket, Err: err}
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	return resp, nil
}

// statusError reads an RFC 9457 problem document.
func statusError(resp *http.Response) error {
	var problem struct {
		Title, Detail string
		Errors        []struct{ Message, Location string }
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if json.Unmarshal(body, &problem) != nil || problem.Detail == "" {
		problem.Detail = strings.TrimSpace(resp.Status + " " + problem.Title)
	}
	for _, e := range problem.Errors {
		problem.Detail += fmt.Sprintf("; %s: %s", strings.TrimPrefix(e.Location, "body."), e.Message)
	}
	return &StatusError{
		Status: resp.StatusCode, Detail: problem.Detail,
		Stopping: resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get(RetryAfter) != "",
	}
}

// stream reads server-sent events until the server ends the stream.
func stream[In any](ctx context.Context, c *Client, r Route[In, Stream], in In, fn func(event string, data []byte) error) error {
	path, body := r.request(in)
	resp, err := c.do(ctx, r.Method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), 4<<20)
	event := ""
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				if err := fn(event, data); errors.Is(err, ErrStop) {
					return nil
				} else if err != nil {
					return err
				}
			}
			event, data = "", data[:0]
		case bytes.HasPrefix(line, []byte("event: ")):
			event = string(line[7:])
		case bytes.HasPrefix(line, []byte("data: ")):
			data = append(data, line[6:]...)
		}
	}
	if err := lines.Err(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &NoDaemonError{Socket: c.socket, Err: err}
	}
	return nil
}
