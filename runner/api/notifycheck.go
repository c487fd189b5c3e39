package api

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"carma/internal/suggest"
)

// NotifyKinds are the kinds of channels of users.
var NotifyKinds = []string{"webhook", "slack", "mail"}

// NotifyHook is the kind of channel that only an administrator has: a program.
const NotifyHook = "hook"

// NotifyFormats and NotifyTLS are the allowed words of two fields.
var (
	NotifyFormats = []string{"json", "text"}
	NotifyTLS     = []string{"starttls", "tls", "none"}
)

// MostNotifyChannels is the largest number of channels of a user.
const MostNotifyChannels = 8

// CheckNotifyName refuses invalid names of channels.
func CheckNotifyName(name string) error {
	ok := name != "" && len(name) <= 32 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if !ok {
		return fmt.Errorf("%q is not the name of a channel: 1 to 32 small letters, digits and dashes", name)
	}
	return nil
}

// Check returns the first error in settings. admin is set for the administrator's
// settings. No error contains a secret.
func (s *NotifySettings) Check(admin bool) error {
	if err := checkNotifyEvents(s.Events, admin); err != nil {
		return err
	}
	if len(s.Channels) > MostNotifyChannels {
		return fmt.Errorf("%d channels; at most %d are possible", len(s.Channels), MostNotifyChannels)
	}
	switch {
	case admin:
	case s.Relay != nil:
		return errors.New("relay is for the administrator's file; give the channel a server")
	case len(s.Allow) > 0:
		return errors.New("allow is for the administrator's file")
	case len(s.Defaults) > 0:
		return errors.New("defaults is for the administrator's file; write events")
	}
	if err := checkNotifyEvents(s.Defaults, false); err != nil {
		return fmt.Errorf("defaults: %w", err)
	}
	if s.Relay != nil {
		if err := s.Relay.checkServer(); err != nil {
			return fmt.Errorf("relay: %w", err)
		}
	}
	for i := range s.Channels {
		c := &s.Channels[i]
		if slices.ContainsFunc(s.Channels[:i], func(o NotifyChannel) bool { return o.Name == c.Name }) {
			return fmt.Errorf("channel %s is there twice", c.Name)
		}
		if err := c.check(admin); err != nil {
			return fmt.Errorf("channel %s: %w", c.Name, err)
		}
	}
	return nil
}

func checkNotifyEvents(events []string, admin bool) error {
	words := NotifyEvents
	if admin {
		words = append(slices.Clone(words), NotifyFault)
	}
	for _, e := range events {
		if e == NotifyFault && !admin {
			return errors.New("events: fault is for administrators")
		}
		if err := suggest.OneOf(e, words); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	return nil
}

func (c *NotifyChannel) check(admin bool) error {
	if err := CheckNotifyName(c.Name); err != nil {
		return err
	}
	kinds := NotifyKinds
	if admin {
		kinds = append(slices.Clone(kinds), NotifyHook)
	} else if c.Kind == NotifyHook {
		return errors.New("kind: hook is for the administrator's file; webhook, slack and mail are for all")
	}
	if err := suggest.OneOf(c.Kind, kinds); err != nil {
		return fmt.Errorf("kind: %w", err)
	}
	if err := checkNotifyEvents(c.Events, admin); err != nil {
		return err
	}
	if err := c.foreign(); err != nil {
		return err
	}
	switch c.Kind {
	case "mail":
		return c.checkMail()
	case NotifyHook:
		if !filepath.IsAbs(c.Command) {
			return errors.New("command: a hook needs the absolute path of a program; its arguments belong into that program")
		}
		return nil
	}
	return c.checkHTTP()
}

// foreign refuses fields of another kind, which would have no effect.
func (c *NotifyChannel) foreign() error {
	given := map[string]bool{
		"url": c.URL != "", "format": c.Format != "", "headers": len(c.Headers) > 0, "to": len(c.To) > 0, "server": c.Server != "", "tls": c.TLS != "",
		"from": c.From != "", "user": c.User != "", "password": c.Password != "", "command": c.Command != "",
	}
	mine := map[string][]string{"webhook": {"url", "format", "headers"}, "slack": {"url"}, "mail": {"to", "server", "tls", "from", "user", "password"}, NotifyHook: {"command", "user"}}[c.Kind]
	for _, key := range []string{"url", "format", "headers", "to", "server", "tls", "from", "user", "password", "command"} {
		if given[key] && !slices.Contains(mine, key) {
			return fmt.Errorf("%s: a channel of kind %s has %s", key, c.Kind, strings.Join(mine, ", "))
		}
	}
	return nil
}

func (c *NotifyChannel) checkHTTP() error {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return errors.New("url: none is given; write for example https://example.org/hook")
	case err != nil: // the library's error contains the address, which is secret
		return errors.New("url: it cannot be read; write for example https://example.org/hook")
	case u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return errors.New("url: it is no address of the web; write for example https://example.org/hook")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("url: %q is not a port", port)
		}
	}
	if c.Format != "" {
		if err := suggest.OneOf(c.Format, NotifyFormats); err != nil {
			return fmt.Errorf("format: %w", err)
		}
	}
	return c.checkHeaders()
}

// notOwn lists headers that a user cannot set.
var notOwn = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Content-Type", "User-Agent"}

func (c *NotifyChannel) checkHeaders() error {
	if len(c.Headers) > 16 {
		return fmt.Errorf("headers: %d; at most 16 are possible", len(c.Headers))
	}
	for name, value := range c.Headers {
		if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		}) {
			return fmt.Errorf("headers: %q is not the name of a header: letters, digits and dashes", name)
		}
		if slices.Contains(notOwn, textproto.CanonicalMIMEHeaderKey(name)) {
			return fmt.Errorf("headers: %s is set by carma; leave it out", name)
		}
		if len(value) > 2000 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("headers: the value of %s has a line break or another control character, or more than 2000 characters", name)
		}
	}
	return nil
}

func (c *NotifyChannel) checkMail() error {
	if len(c.To) == 0 {
		return errors.New("to: nobody is named; write for example ada@example.org")
	}
	if len(c.To) > 10 {
		return fmt.Errorf("to: %d addresses; at most 10 are possible", len(c.To))
	}
	for _, to := range c.To {
		if err := checkMailAddress("to", to); err != nil {
			return err
		}
	}
	if c.Server == "" {
		if c.TLS != "" || c.User != "" || c.Password != "" || c.From != "" {
			return errors.New("server: tls, from, user and password belong to a server; name it, or leave them out to use the administrator's relay")
		}
		return nil
	}
	return c.checkServer()
}

// checkServer checks the mail server of a channel or relay.
func (c *NotifyChannel) checkServer() error {
	host, port, err := net.SplitHostPort(c.Server)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || host == "" || n < 1 || n > 65535 || strings.ContainsAny(host, " \t\r\n/@") {
		return fmt.Errorf("server: %q is not HOST:PORT; write for example mail.example.org:587", c.Server)
	}
	if c.TLS != "" {
		if err := suggest.OneOf(c.TLS, NotifyTLS); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	if (c.User == "") != (c.Password == "") {
		return errors.New("user and password go together")
	}
	if c.TLS == "none" && c.Password != "" {
		return errors.New("password: it would travel readable; write tls: starttls, or tls: tls")
	}
	return checkMailAddress("from", c.From)
}

// checkMailAddress accepts a bare address: no name, no line break, one @ (or none, for a
// user of the relay's own machine).
func checkMailAddress(key, text string) error {
	a, err := mail.ParseAddress(text)
	if err != nil && !strings.Contains(text, "@") {
		a, err = mail.ParseAddress(text + "@localhost")
		if a != nil {
			a.Address = strings.TrimSuffix(a.Address, "@localhost")
		}
	}
	if err != nil || a.Address != text || len(text) > 254 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%s: %q is not a mail address; write for example ada@example.org", key, text)
	}
	return nil
}

// Target names the destination of a channel for people, without secrets.
func (c *NotifyChannel) Target() string {
	switch c.Kind {
	case "mail":
		text := strings.Join(c.To, ", ")
		if c.Server != "" {
			text += " by " + c.Server
		}
		return text
	case NotifyHook:
		return c.Command
	}
	if u, err := url.Parse(c.URL); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return ""
}
