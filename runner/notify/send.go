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
	ID       string    `json:"id"` // of the first message and how many there are
	Server   string    `json:"server"`
	Title    string    `json:"title"`
	Text     string    `json:"text"`
	Messages []Message `json:"messages"`
	LeftOut  int       `json:"left_out,omitempty"` // further messages, in the text only as numbers

	short string // the text without output
}

// sender delivers letters to one channel. deliver returns the receiver's answer, in short;
// an error is a *failure.
type sender interface {
	deliver(ctx context.Context, l *letter) (said string, err error)
}

// failure says why a letter was not delivered. Its text has neither a secret nor any of the
// receiver's text.
type failure struct {
	text  string
	final bool          // another try would fail alike
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

// transport turns an error of a connection into a failure, in words of our own: the
// libraries' errors have addresses and secrets in them.
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
