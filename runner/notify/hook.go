package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// hookOutput is the largest part of a hook's output that is logged, in bytes.
const hookOutput = 2 << 10

// hookUser is the user that runs hooks if none is configured and the daemon is root.
const hookUser = "nobody"

// hook runs a program of the administrator with the letter as JSON on its input. No shell
// is involved, and nothing that users choose is among its arguments or in its
// environment.
type hook struct {
	path, as string
	log      zerolog.Logger
}

func (h *hook) deliver(ctx context.Context, l *letter) (string, error) {
	if err := trusted(h.path); err != nil {
		return "", &failure{text: err.Error(), final: true}
	}
	who, err := h.credential()
	if err != nil {
		return "", &failure{text: err.Error(), final: true}
	}
	in, err := json.Marshal(l)
	if err != nil {
		return "", final("it cannot be written: %v", err)
	}
	out := &tail{most: hookOutput}
	cmd := exec.CommandContext(ctx, h.path)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: who}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // kill the processes that the hook left running
	}
	if text := strings.TrimSpace(out.String()); text != "" {
		h.log.Info().Str("hook", h.path).Str("output", text).Msg("the hook has printed")
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return "it ended with code 0", nil
	case ctx.Err() != nil:
		return "", temporary("it did not end in time and was killed")
	case errors.As(err, &exit):
		return "", temporary("it ended with code %d", exit.ExitCode())
	}
	return "", temporary("it could not be started: %v", err)
}

// credential returns the hook's user, or nil for the daemon's user, which is not root.
func (h *hook) credential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		if u, err := user.Current(); h.as != "" && (err != nil || u.Username != h.as) {
			return nil, fmt.Errorf("only root's daemon can run it as user %s", h.as)
		}
		return nil, nil
	}
	name := cmp.Or(h.as, hookUser)
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("user %s is not known on this machine", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil || err2 != nil {
		return nil, fmt.Errorf("user %s has no numbers", name)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{}}, nil
}

// trusted refuses a program that others than root and the daemon's user could change: the
// file, its link target, or a folder in their paths.
func trusted(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("%s is not there", path)
	}
	for at, first := real, true; ; at, first = filepath.Dir(at), false {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("%s cannot be looked at", at)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0
		if !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 && !sticky {
			return fmt.Errorf("%s can be changed by others than root; mend its owner and mode", at)
		}
		if first && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
			return fmt.Errorf("%s is not a program that can be run", at)
		}
		if at == "/" {
			return nil
		}
	}
}

// tail keeps the last bytes that are written.
type tail struct {
	most int
	buf  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p[max(0, len(p)-t.most):]...)
	t.buf = t.buf[max(0, len(t.buf)-t.most):]
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.buf), "?") }
