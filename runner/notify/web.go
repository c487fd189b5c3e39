package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"carma/runner/api"
)

// maxAnswer is the number of bytes of an answer that are read, so that the connection can
// end well. The bytes are not kept.
const maxAnswer = 4 << 10

// poster sends to a webhook or Slack.
type poster struct {
	c      api.NotifyChannel
	client *http.Client
}

func newPoster(c *api.NotifyChannel, g guard) *poster {
	return &poster{c: *c, client: &http.Client{
		Transport: &http.Transport{
			DialContext: g.dial, Proxy: nil, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		// A redirect could lead to any address, and would send the secrets there.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (p *poster) deliver(ctx context.Context, l *letter) (string, error) {
	body, kind, err := p.body(l)
	if err != nil {
		return "", final("it cannot be written: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.c.URL, bytes.NewReader(body))
	if err != nil {
		return "", final("its address cannot be read")
	}
	for name, value := range p.c.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("User-Agent", "carma")
	r.Header.Set("Carma-Message", l.ID)
	if p.c.Format == "text" {
		r.Header.Set("Title", mime.QEncoding.Encode("utf-8", l.Title))
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return "", transport(err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return answered(answer)
}

func (p *poster) body(l *letter) (body []byte, kind string, err error) {
	switch {
	case p.c.Kind == "slack":
		body, err = json.Marshal(map[string]string{"text": slackText(l)})
		return body, "application/json", err
	case p.c.Format == "text":
		return []byte(l.Text), "text/plain; charset=utf-8", nil
	}
	body, err = json.Marshal(l)
	return body, "application/json", err
}

// answered converts the status code of an answer to a result.
func answered(a *http.Response) (string, error) {
	said := fmt.Sprintf("it answered %d", a.StatusCode)
	if text := http.StatusText(a.StatusCode); text != "" {
		said += " " + text
	}
	f := &failure{text: said}
	switch code := a.StatusCode; {
	case code >= 200 && code < 300:
		return said, nil
	case code >= 300 && code < 400:
		f.text, f.final = said+"; redirects are not followed: name the address that it leads to", true
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		f.after = retryAfter(a.Header.Get("Retry-After"), time.Now())
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500:
	default:
		f.final = true
	}
	return "", f
}

// retryAfter reads the header: seconds, or a date. It is at most an hour.
func retryAfter(text string, now time.Time) time.Duration {
	d := time.Duration(0)
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
		d = time.Duration(min(n, 3600)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return max(0, min(d, time.Hour))
}

// slackText returns a letter in Slack's own format. Its three special characters are
// escaped, so nothing in a name can mention people or make links.
func slackText(l *letter) string {
	safe := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	text := "*" + safe.Replace(strings.ReplaceAll(l.Title, "*", "∗")) + "*\n" + safe.Replace(l.short)
	for i := range l.Messages {
		if out := l.Messages[i].Output; len(out) > 0 {
			if len(l.Messages) > 1 {
				text += fmt.Sprintf("\nlast lines of task %d:", l.Messages[i].Task)
			}
			text += "\n```" + strings.ReplaceAll(safe.Replace(strings.Join(out, "\n")), "```", "'''") + "```"
		}
	}
	return text
}
