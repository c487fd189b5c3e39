package suspend

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// HelperCommand is the first argument of the helper process. The program that makes
// a [Helper] must call [RunHelper] for it.
const HelperCommand = "suspend-helper"

// RunHelper runs [HelperCommand] and returns the exit code. args are the path of the
// driver's library and, if there is one, the lock file.
//
// It answers requests until its input ends, that is until the daemon closes it or dies.
// It then waits for running calls, each up to its limit, because an interrupted call may
// leave a task's process in an intermediate state. Signals for the daemon's whole group
// must not interrupt it either.
func RunHelper(args []string) int {
	if len(args) < 1 || len(args) > 2 {
		fmt.Fprintln(os.Stderr, "carma: "+HelperCommand+" is started by carma daemon, with one or two arguments")
		return 2
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	out, err := ownOutput()
	if err != nil {
		fmt.Fprintln(os.Stderr, "carma: "+HelperCommand+":", err)
		return 1
	}
	s := &server{out: out}
	if len(args) == 2 {
		if err := lockFile(args[1]); err != nil {
			s.write(reply{Error: err.Error()})
			return 1
		}
	}
	if s.driver, err = openDriver(args[0]); err != nil {
		s.write(reply{Error: err.Error()})
		return 1
	}
	s.write(reply{CUDA: s.driver.cuda})
	return s.serve(os.Stdin)
}

// ownOutput returns the standard output and replaces it by the standard error, because
// the library's output must not appear between the answers.
func ownOutput() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "answers"), unix.Dup3(2, 1, 0)
}

// lockFile waits until no other helper has the file. The helper of a killed daemon may
// still be in a call. The lock ends with the process.
func lockFile(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	for {
		if err = unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// server is the helper's side of the connection.
type server struct {
	driver *driver
	calls  sync.WaitGroup
	mu     sync.Mutex
	out    io.Writer
	last   time.Time // latest end of the last running call
}

func (s *server) write(r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = writeLine(s.out, r) // it fails if the daemon has died
}

func (s *server) serve(in io.Reader) int {
	lines := newLineReader(in)
	for {
		var r request
		if err := readLine(lines, &r); err != nil {
			s.finish()
			if err == io.EOF {
				return 0
			}
			fmt.Fprintln(os.Stderr, "carma: "+HelperCommand+":", err)
			return 1
		}
		s.expect(r)
		s.calls.Go(func() {
			state, code, err := s.driver.call(r)
			answer := reply{ID: r.ID, Code: code, State: state}
			if err != nil {
				answer.Error = err.Error()
			}
			s.write(answer)
		})
	}
}

// expect records the time limit of a call.
func (s *server) expect(r request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end := time.Now().Add(time.Duration(r.LimitMS) * time.Millisecond); end.After(s.last) {
		s.last = end
	}
}

// finish waits for the running calls, but no longer than their limits.
func (s *server) finish() {
	done := make(chan struct{})
	go func() { s.calls.Wait(); close(done) }()
	s.mu.Lock()
	left := time.Until(s.last)
	s.mu.Unlock()
	select {
	case <-done:
	case <-time.After(left):
	}
}
