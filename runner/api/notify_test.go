package api

import (
	"strings"
	"testing"
)

func TestParseNotify(t *testing.T) {
	for text, want := range map[string]string{
		"failed": "failed", "finished,failed": "finished,failed", "failed, idle,failed": "failed,idle", "failed:phone": "failed:phone",
		"all": "all", "all:phone": "all:phone", "none": "none",
		"started,finished,failed,stopped,recovered,idle,device,suspended,resumed": "all",
	} {
		w, err := ParseNotify(text)
		if err != nil || w.String() != want {
			t.Errorf("%q: %q, %v", text, w, err)
		}
		if again, err := ParseNotify(w.String()); err != nil || again.String() != want {
			t.Errorf("%q read again: %v", w, err)
		}
	}
	for text, want := range map[string]string{
		"":             `"" is not one of`,
		"fialed":       "nearest: failed",
		"fault":        `"fault" is not one of`,
		"failed:":      "is not the name of a channel",
		"failed:a b":   "is not the name of a channel",
		"failed:A":     "is not the name of a channel",
		"none:phone":   "none is for all channels",
		"failed,none":  "none stands alone",
		"failed,all":   "all stands alone",
		"failed,":      `"" is not one of`,
		"failed:a:b":   "is not the name of a channel",
		"failed:../..": "is not the name of a channel",
	} {
		if _, err := ParseNotify(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheckNotify(t *testing.T) {
	hook := func(change func(*NotifyChannel)) NotifyChannel {
		c := NotifyChannel{Name: "a", Kind: "webhook", URL: "https://secret.example.org/x"}
		change(&c)
		return c
	}
	mail := func(change func(*NotifyChannel)) NotifyChannel {
		c := NotifyChannel{Name: "a", Kind: "mail", To: []string{"ada@example.org"}, Server: "mail.example.org:587", From: "ada@example.org", User: "ada", Password: "secret"}
		change(&c)
		return c
	}
	same := func(*NotifyChannel) {}
	for _, test := range []struct {
		c     NotifyChannel
		admin bool
		want  string // empty if it is valid
	}{
		{c: hook(same)},
		{c: mail(same)},
		{c: mail(func(c *NotifyChannel) { c.Server, c.From, c.User, c.Password = "", "", "", "" })},
		{c: mail(func(c *NotifyChannel) { c.To = []string{"root"} })},
		{c: NotifyChannel{Name: "a", Kind: "hook", Command: "/usr/bin/x"}, admin: true},
		{c: NotifyChannel{Name: "a", Kind: "hook", Command: "/usr/bin/x"}, want: "hook is for the administrator's file"},
		{c: NotifyChannel{Name: "a", Kind: "hook", Command: "x -y"}, admin: true, want: "absolute path"},
		{c: hook(func(c *NotifyChannel) { c.Name = "../x" }), want: "not the name of a channel"},
		{c: hook(func(c *NotifyChannel) { c.Kind = "slak" }), want: "nearest: slack"},
		{c: hook(func(c *NotifyChannel) { c.URL = "" }), want: "none is given"},
		{c: hook(func(c *NotifyChannel) { c.URL = "ftp://secret.example.org" }), want: "no address of the web"},
		{c: hook(func(c *NotifyChannel) { c.URL = "file:///secret" }), want: "no address of the web"},
		{c: hook(func(c *NotifyChannel) { c.URL = "https://" }), want: "no address of the web"},
		{c: hook(func(c *NotifyChannel) { c.URL = "https://secret:99999999/" }), want: "is not a port"},
		{c: hook(func(c *NotifyChannel) { c.URL = "https://secret\n.org/" }), want: "cannot be read"},
		{c: hook(func(c *NotifyChannel) { c.Format = "xml" }), want: "format"},
		{c: hook(func(c *NotifyChannel) { c.Events = []string{"fault"} }), want: "fault is for administrators"},
		{c: hook(func(c *NotifyChannel) { c.Events = []string{"fault"} }), admin: true},
		{c: hook(func(c *NotifyChannel) { c.To = []string{"ada@example.org"} }), want: "to: a channel of kind webhook has url"},
		{c: hook(func(c *NotifyChannel) { c.Headers = map[string]string{"X": "secret\r\nHost: x"} }), want: "control character"},
		{c: hook(func(c *NotifyChannel) { c.Headers = map[string]string{"X: y\r\n": "secret"} }), want: "not the name of a header"},
		{c: hook(func(c *NotifyChannel) { c.Headers = map[string]string{"host": "secret"} }), want: "is set by carma"},
		{c: mail(func(c *NotifyChannel) { c.To = nil }), want: "nobody is named"},
		{c: mail(func(c *NotifyChannel) { c.To = []string{"ada@example.org\r\nBcc: x@y.z"} }), want: "not a mail address"},
		{c: mail(func(c *NotifyChannel) { c.To = []string{"Ada <ada@example.org>"} }), want: "not a mail address"},
		{c: mail(func(c *NotifyChannel) { c.From = "" }), want: "from"},
		{c: mail(func(c *NotifyChannel) { c.Server = "mail.example.org" }), want: "not HOST:PORT"},
		{c: mail(func(c *NotifyChannel) { c.TLS = "none" }), want: "travel readable"},
		{c: mail(func(c *NotifyChannel) { c.Password = "" }), want: "go together"},
		{c: mail(func(c *NotifyChannel) { c.Server = "" }), want: "belong to a server"},
	} {
		err := (&NotifySettings{Channels: []NotifyChannel{test.c}}).Check(test.admin)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.c, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("it has a secret or a second line: %v", err)
		}
		if target := test.c.Target(); strings.Contains(target, "/x") && test.c.Kind == "webhook" {
			t.Error(target)
		}
	}
	twice := NotifySettings{Channels: []NotifyChannel{hook(same), hook(same)}}
	if err := twice.Check(false); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
	for want, s := range map[string]NotifySettings{"relay": {Relay: &NotifyChannel{}}, "allow": {Allow: []string{"x"}}, "defaults": {Defaults: []string{"failed"}}} {
		if err := s.Check(false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
