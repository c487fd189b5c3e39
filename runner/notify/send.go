package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"carma/runner/api"
)

// letter is one sending: one message, or several in one.
type letter struct {
	ID       string    `json:"id"` // ID of the first message, and the number of messages
	Server   string    `json:"server"`
	Title    string    `json:"title"`
	Text     string    `json:"text"`
	Messages []Message `json:"messages"`
	LeftOut  int       `json:"left_out,omitempty"` // further messages, in the text only as numbers

	short string // the text without output
}

// sender delivers letters to one channel. deliver returns a short form of the receiver's
// answer. An error is a *failure.
type sender interface {
	deliver(ctx context.Context, l *letter) (said string, err error)
}

// failure is the reason why a letter was not delivered. Its text contains no secret and
// no text of the receiver.
type failure struct {
	text  string
	final bool          // another try would fail in the same way
	after time.Duration // requested by the receiver, or 0
}

func (f *failure) Error() string { return f.text }

func temporary(format string, args ...any) error { return &failure{text: fmt.Sprintf(format, args...)} }
func final(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...), final: true}
}

// senderOf makes the sender of a channel.
func (p *Post) senderOf(c *api.NotifyChannel, relay *api.NotifyChannel, g guard) (sender, error) {
	switch c.Kind {
	case "mail":
		by := c
		if c.Server == "" {
			if relay == nil {
				return nil, final("the administrator has set no mail server (relay), and the channel names none")
			}
			by, g = relay, guard{free: true}
		}
		return &mailer{to: c.To, by: by, guard: g, host: p.opt.Host}, nil
	case api.NotifyHook:
		return &hook{path: c.Command, as: c.User, log: p.opt.Log}, nil
	}
	return newPoster(c, g), nil
}

// transport turns an error of a connection into a failure, with its own text, because the
// libraries' errors contain addresses and secrets.
func transport(err error) error {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errRefused):
		return final("%s", errRefused.Error())
	case errors.As(err, &dns) && dns.IsNotFound:
		return temporary("its host is not known")
	case errors.As(err, &dns):
		return temporary("its host could not be looked up")
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return temporary("it did not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return temporary("nobody listens there")
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return temporary("it cannot be reached from this machine")
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return temporary("its certificate is not valid here")
	case errors.As(err, &record):
		return temporary("it does not speak TLS there")
	}
	return temporary("the connection failed")
}
