package option

import (
	"strings"
	"testing"
)

// TestSyntax reads texts as docker run does. What Syntax returns reads back as itself.
func TestSyntax(t *testing.T) {
	for _, row := range []struct{ unit, text, want string }{
		{"ulimit", "memlock=-1", "memlock=-1:-1"},
		{"ulimit", "RLIMIT_NOFILE=1024:unlimited", "nofile=1024:-1"},
		{"tmpfs", "/scratch/:size=2G,rw,noexec", "/scratch:size=2147483648B"},
		{"tmpfs", "/x:size=100,mode=700,ro,exec,uid=1,gid=2", "/x:size=100B,mode=700,ro,exec,uid=1,gid=2"},
		{"port", "127.0.0.1:8888:80/TCP", "8888:80"},
		{"port", "127.0.0.1::53/udp", "53/udp"},
		{"device", "/dev/null:/dev/own:rw", "/dev/null:/dev/own:rw"},
		{"device", "/dev/null:/dev/null:rwm", "/dev/null"},
		{"device", "/dev/null:r", "/dev/null:/dev/null:r"},
		{"signal", "int", "SIGINT"},
		{"signal", "10", "SIGUSR1"},
		{"signal", "35", "35"},
		{"hostname", "box-1.lab", "box-1.lab"},
		{"group", "video", "video"},
	} {
		read := Syntax(row.unit)
		got, err := read(row.text)
		if err != nil || got != row.want {
			t.Errorf("%s %q: %q, %v; want %q", row.unit, row.text, got, err, row.want)
		}
		if again, err := read(got); err != nil || again != got {
			t.Errorf("%s %q read again: %q, %v", row.unit, got, again, err)
		}
	}
	if Syntax("memory") != nil {
		t.Error("memory has a syntax here")
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, row := range []struct{ unit, text, want string }{
		{"ulimit", "nofil=1", "nofile"},
		{"ulimit", "nofile=9:8", "write nofile=8"},
		{"tmpfs", "scratch", "not an absolute folder"},
		{"tmpfs", "/dev/shm", "--shm-size"},
		{"tmpfs", "/x:sice=1", "nearest: size"},
		{"port", "0.0.0.0:80:80", "127.0.0.1 only"},
		{"port", "80-90", "each alone"},
		{"device", "/etc/passwd", "below /dev"},
		{"device", "/dev/null:/dev/x:wr", "in this order"},
		{"signal", "SIGNOTHING", "is no signal"},
		{"hostname", strings.Repeat("a", 64), "at most 63"},
		{"group", "-1", "not the name or number"},
	} {
		if got, err := Syntax(row.unit)(row.text); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: %q, %v; want %q", row.unit, row.text, got, err, row.want)
		}
	}
}
