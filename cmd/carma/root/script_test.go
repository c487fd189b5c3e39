package root

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/contexts"
	"carma/configs/traces/synth"
	"carma/runner/api"
	"carma/runner/mps/standin"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		// carma connects over TLS, but without a token. carma-code cannot: it is the
		// program of an installation without carma-kubernetes.
		"carma": func() {
			contexts.OverTLS = func(c contexts.Context) (*api.Client, error) { return api.NewRemote(c.Host, http.DefaultClient), nil }
			Main("dev", nil)
		},
		"nvidia-cuda-mps-control": standin.Main,
		// carma-code prints the exit code on stdout, last.
		"carma-code": func() {
			code := Execute(cli.New(os.Stdin, os.Stdout, os.Stderr, "dev"), os.Args[1:], nil)
			fmt.Println("exit code", code)
		},
	})
}

type daemonKey struct{}

func daemonOf(ts *testscript.TestScript) *fakeDaemon { return ts.Value(daemonKey{}).(*fakeDaemon) }

// UPDATE_SCRIPTS=1 go test rewrites the expected outputs in the scripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			for _, e := range os.Environ() {
				if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "CARMA_") {
					env.Setenv(name, "")
				}
			}
			d := newFakeDaemon(filepath.Join(env.WorkDir, "s"))
			env.Values[daemonKey{}] = d
			env.Defer(d.close)
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", "")
			env.Setenv("CARMA_CONFIG", os.DevNull)
			env.Setenv("CARMA_SOCKET", d.socket)
			short, err := os.MkdirTemp("", "s") // for sockets
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(short) })
			env.Setenv("SHORT", short)
			env.Setenv("TZ", "UTC")
			env.Setenv("COLUMNS", "80") // without it no line would be cut
			// The race detector would sleep for a second at every exit.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("DOCKER_HOST", "unix://"+filepath.Join(env.WorkDir, "docker.sock"))
			return os.Mkdir(home, 0o755)
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serve, "await": await, "fits": fits, "oneline": oneLineOnly, "synth": synthetic,
		},
	})
}

// serve starts a fake daemon: serve [busy|away|cluster] [refuse=N].
func serve(ts *testscript.TestScript, neg bool, args []string) {
	d := daemonOf(ts)
	for _, arg := range args {
		if arg == "busy" {
			d.busy()
		} else if arg == "away" {
			d.away()
		} else if arg == "cluster" {
			d.cluster()
		} else if n, ok := strings.CutPrefix(arg, "refuse="); ok {
			d.refuse, _ = strconv.Atoi(n)
		}
	}
	ts.Check(d.listen())
}

// await waits until a task runs, has been asked to stop, or its output was
// read: await running|stopped|read TASK; or for streams: await watched N.
func await(ts *testscript.TestScript, _ bool, args []string) {
	d := daemonOf(ts)
	d.until(func() bool {
		if args[0] == "watched" { // this number of streams of events has begun
			return strconv.Itoa(d.watched) == args[1]
		}
		t := d.find(args[1])
		if t == nil {
			return false
		}
		switch args[0] {
		case "stopped":
			return t.stops > 0
		case "running":
			return t.Phase == "running"
		}
		return len(t.log) > 0 && t.sent == len(t.log)
	})
}

// fits checks that no line of stdout is wider: fits 80.
func fits(ts *testscript.TestScript, neg bool, args []string) {
	width, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile("stdout")))
	for lines.Scan() {
		if n := utf8.RuneCountInString(lines.Text()); n > width != neg {
			ts.Fatalf("%d wide: %s", n, lines.Text())
		}
	}
}

// synthetic writes an invented log: synth philly|helios JOBS FILE.
func synthetic(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[2]))
	ts.Check(err)
	write := synth.Philly
	if args[0] == "helios" {
		write = synth.Helios
	}
	ts.Check(write(f, synth.Options{Jobs: n, Seed: 1}))
	ts.Check(f.Close())
}

// oneLineOnly checks that stderr is one line.
func oneLineOnly(ts *testscript.TestScript, neg bool, args []string) {
	if text := ts.ReadFile("stderr"); strings.Count(text, "\n") != 1 {
		ts.Fatalf("not one line: %q", text)
	}
}
