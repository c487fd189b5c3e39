package settings

import (
	"strings"
	"testing"
)

// TestPagePort checks that only addresses are accepted that no other machine can reach.
func TestPagePort(t *testing.T) {
	for in, want := range map[string]string{
		"off": "", "auto": "", "127.0.0.1:7070": "127.0.0.1:7070", "localhost:0": "127.0.0.1:0", "[::1]:7070": "[::1]:7070", "127.3.2.1:80": "127.3.2.1:80",
	} {
		if got, err := PagePort(in); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"0.0.0.0:7070": "other machines", ":7070": "other machines", "[::]:7070": "other machines", "10.0.0.1:7070": "other machines",
		"gpu1.lab.org:7070": "other machines", "[::ffff:127.0.0.1]:7070": "other machines", "[::1%lo]:7070": "other machines", "127.1:7070": "other machines",
		"7070": "127.0.0.1:7070", "on": "127.0.0.1:7070", "": "127.0.0.1:7070", "127.0.0.1:http": "not a port", "127.0.0.1:70000": "not a port", "127.0.0.1:-1": "not a port",
	} {
		if got, err := PagePort(in); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, %v; want an error with %q", in, got, err, why)
		}
	}
	for in, want := range map[string]string{"/run/carma/carma.sock": "/run/carma/carma-web.sock", "/tmp/s": "/tmp/s-web.sock"} {
		if got, err := PageSocket(in); err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	if _, err := PageSocket("/" + strings.Repeat("a", 105)); err == nil {
		t.Error("a path that is too long")
	}
}
