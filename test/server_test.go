//go:build e2e

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/verify"
)

// server is a carma daemon: a process with its own data folder and socket. It can
// be killed and started again.
type server struct {
	t   *testing.T
	bin string // path of the daemon's program
	cli string // path of the commands' program
	// who runs the commands that name no user, the test's own user if nil.
	who    *syscall.Credential
	root   string // short: a socket's path has a limit
	dir    string // the data folder
	socket string
	flags  []string
	env    []string // additional environment of the daemon
	host   string   // DOCKER_HOST of the daemon; the tests' own if empty
	engine *watcher // of the engine that it uses
	api    *api.Client

	mounted bool // the data folder is a file system of its own

	log    stream // output of all its runs
	life   int    // position at which the output of the present run begins
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is reaped
}

// newServer prepares a daemon on a simulated DGX Station; start starts it. At the
// end of the test its containers are removed from the engine.
func newServer(t *testing.T, flags ...string) *server {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil { // so that the tests' other users can enter it
		t.Fatal(err)
	}
	s := &server{
		t: t, bin: carma, cli: carma, root: root, dir: filepath.Join(root, "d"), socket: filepath.Join(root, "s"),
		flags:  append([]string{"--gpus", "sim:dgx-station-a100", "--speed", "600", "--policy", "magm"}, flags...),
		engine: engine,
	}
	s.api = api.NewClient(s.socket)
	t.Cleanup(s.cleanUp)
	return s
}

// newUsersServer prepares a daemon of root's whose commands an ordinary user runs. The
// server's folder belongs to that user.
func newUsersServer(t *testing.T, flags ...string) *server {
	t.Helper()
	s := newServer(t, flags...)
	if os.Geteuid() != 0 {
		return s // the test's user is an ordinary one
	}
	id := uint32(12346 + 2*people.Add(1))
	s.who = &syscall.Credential{Uid: id, Gid: id}
	if err := os.Chown(s.root, int(id), int(id)); err != nil {
		t.Fatal(err)
	}
	s.borrowCommand()
	return s
}

func (s *server) cleanUp() {
	s.kill()
	if id := s.instance(); id != "" {
		if err := s.engine.remove(id); err != nil {
			s.t.Errorf("containers are left: %v", err)
		}
	}
	if s.mounted {
		if err := syscall.Unmount(s.dir, 0); err != nil {
			s.t.Error(err)
		}
	}
	if err := os.RemoveAll(s.root); err != nil {
		s.t.Error(err)
	}
	log := s.log.String()
	if strings.Contains(log, "DATA RACE") {
		s.t.Error("the daemon has a data race")
	}
	if s.t.Failed() {
		const last = 16 << 10
		s.t.Logf("the daemon's log ends with\n%s", log[max(0, len(log)-last):])
	}
}

// start starts the daemon and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	s.launch()
	s.ready()
}

// launch starts the daemon without waiting for it.
func (s *server) launch() {
	s.t.Helper()
	s.life = len(s.log.String())
	args := append([]string{"daemon", "--data-dir", s.dir, "--socket", s.socket, "--log-format", "json"}, s.flags...)
	s.cmd = exec.Command(s.bin, args...)
	s.cmd.Env = append(environment(s.socket), s.env...)
	if s.host != "" {
		s.cmd.Env = append(s.cmd.Env, "DOCKER_HOST="+s.host)
	}
	s.cmd.Stderr = &s.log
	s.cmd.Stdout = &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func() {
		_ = s.cmd.Wait()
		close(exited)
	}()
}

// ready waits until the daemon answers.
func (s *server) ready() {
	s.t.Helper()
	s.logged("carma is ready")
}

// logged waits for words in the daemon's log.
func (s *server) logged(words string) {
	s.t.Helper()
	s.log.await(s.t, words, s.life, s.exited)
}

// kill kills the daemon like kill -9, if it runs.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// stop stops the daemon as an operator does. It must exit with 0.
func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatal("the daemon does not stop")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the daemon stopped with exit code %d", code)
	}
	s.cmd = nil
}

// instance returns the label of the daemon's containers, or empty if it has no journal
// yet.
func (s *server) instance() string {
	j, err := journal.OpenReadOnly(s.dir)
	if err != nil {
		return ""
	}
	defer func() { _ = j.Close() }()
	id, err := j.Meta("instance")
	if err != nil {
		return ""
	}
	return string(id)
}

// containers returns the daemon's containers as the engine knows them.
func (s *server) containers() []life { return s.engine.of(s.instance()) }

// speed changes the speed of simulated time from now on.
func (s *server) speed(speed float64) {
	s.t.Helper()
	if _, err := s.api.SetSpeed(s.t.Context(), speed); err != nil {
		s.t.Fatal(err)
	}
}

// verified replays the journal, in this process and by the command.
func (s *server) verified() verify.Result {
	s.t.Helper()
	defer func(who *syscall.Credential) { s.who = who }(s.who)
	s.who = nil // the journal is root's
	v, err := verify.Journal(s.dir, "")
	if err != nil {
		s.t.Fatal(err)
	}
	if v.Differs != "" {
		s.t.Errorf("the journal replays to other decisions: %s", v.Differs)
	}
	if len(v.Faults) > 0 {
		s.t.Errorf("the journal has faults: %s", strings.Join(v.Faults, "; "))
	}
	if v.MostReserved > 1 {
		s.t.Errorf("%.0f %% of a GPU was reserved", 100*v.MostReserved)
	}
	for _, args := range [][]string{{"history", "verify", "--data-dir", s.dir}, {"replay", "--journal", s.dir}} {
		if r := s.carma(args...); r.code != 0 {
			s.t.Errorf("%v", r)
		}
	}
	return v
}

// needRoot skips a test that needs root.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can")
	}
}
