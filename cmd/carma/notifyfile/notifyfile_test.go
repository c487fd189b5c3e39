package notifyfile

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"carma/runner/api"
)

func TestParse(t *testing.T) {
	no := false
	got, err := Parse("notify.yaml", []byte(`
events: [failed, finished]
channels:
  phone:
    kind: webhook
    url: https://ntfy.sh/topic
    format: text
    headers: {Authorization: Bearer x}
    events: failed, idle
  me:
    kind: mail
    to: ada@example.org
    output: false
relay: {server: "localhost:25", tls: none, from: carma@lab.example}
allow: [10.1.0.0/16, ntfy.lab]
defaults: [failed]
`), true)
	want := api.NotifySettings{
		Events: []string{"failed", "finished"}, Allow: []string{"10.1.0.0/16", "ntfy.lab"}, Defaults: []string{"failed"},
		Relay: &api.NotifyChannel{Server: "localhost:25", TLS: "none", From: "carma@lab.example"},
		Channels: []api.NotifyChannel{
			{Name: "phone", Kind: "webhook", URL: "https://ntfy.sh/topic", Format: "text", Headers: map[string]string{"Authorization": "Bearer x"}, Events: []string{"failed", "idle"}},
			{Name: "me", Kind: "mail", To: []string{"ada@example.org"}, Output: &no},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got, want)
	}
	for _, empty := range []string{"", "# nothing\n", "channels:\n", "channels: {}\n"} {
		if s, err := Parse("x", []byte(empty), false); err != nil || len(s.Channels) > 0 {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// TestFaults checks that each error has one line with its place, and contains no secret.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"channels: [a]":      "n:1: channels: each has a name of yours",
		"chanels: {}":        `n:1: notify.yaml has no key "chanels"; did you mean channels?`,
		"relay: {}":          `n:1: notify.yaml has no key "relay"`,
		"\tx: secret":        "n: it is not YAML",
		"a: 'secret":         "n: it is not YAML",
		"- secret":           "n:1: notify.yaml: it has no keys",
		"events: {a: b}":     "n:1: events is not a list",
		"events: failed,fin": "n: events: ",
		"channels:\n  a:\n    kind: slack\n    ulr: https://secret":              `n:4: channel a has no key "ulr"; did you mean url?`,
		"channels:\n  a:\n    kind: slack\n    url: secret":                      "n:2: channel a: url: it is no address",
		"channels:\n  a:\n    kind: slack\n    url: [secret]":                    "n:4: channel a: url is not a text",
		"channels:\n  a:\n    kind: slack\n    kind: mail":                       "n:4: channel a: kind is there twice",
		"channels:\n  a:\n    kind: mail\n    to: a@b.c\n    output: secret":     "n:5: channel a: output is true or false",
		"channels:\n  a:\n    kind: webhook\n    url: secret\n    headers: [x]":  "n:5: channel a: headers: write for example",
		"channels:\n  ? [secret]\n  : {kind: slack, url: 'https://x.example/'}":  `n:2: channel : "" is not the name of a channel`,
		"channels:\n  a: &x {kind: slack, url: 'https://x.example/'}\n  b: *x\n": "n:3: channel b: it has no keys",
	} {
		_, err := Parse("n", []byte(text), false)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notify.yaml")
	if _, known, err := Read(path, false); known || err != nil {
		t.Error(known, err)
	}
	write := func(mode os.FileMode, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(0o600, "channels: {}")
	if _, known, err := Read(path, true); !known || err != nil || Open(path) {
		t.Error(known, err)
	}
	for _, mode := range []os.FileMode{0o644, 0o620} {
		write(mode, "channels: {}")
		if _, _, err := Read(path, true); err == nil || !strings.Contains(err.Error(), "chmod 600") || !Open(path) {
			t.Errorf("%o: %v", mode, err)
		}
	}
	write(0o600, strings.Repeat("#", MaxSize+1))
	if _, _, err := Read(path, false); err == nil || !strings.Contains(err.Error(), "larger than 64 KiB") {
		t.Error(err)
	}
	if _, _, err := Read(dir, false); err == nil || !strings.Contains(err.Error(), "it is not a file") {
		t.Error(err)
	}
}
