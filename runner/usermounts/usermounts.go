// Package usermounts checks the files and folders that users mount into containers, and opens
// them with the rights of the user. It owns the bound on checks that run at a time, because a
// network file system may hang. It answers who may mount without a check, whether a mount of a
// submission is allowed, and why a mount is refused. Package mounts does the work in the kernel.
package usermounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/mounts"
	"carma/runner/request"
	"carma/runner/rights"

	"golang.org/x/sys/unix"
)

const (
	// SubmitLimit bounds the check of a user's files at a submission.
	SubmitLimit = 5 * time.Second
	// maxOpening is the largest number of checks that run at a time, including hanging ones.
	maxOpening = 64
)

// Config has what an opener needs of the daemon.
type Config struct {
	Driver   containers.Driver
	MountDir string          // folder with the places of mounts, or "" if there is none
	Allowed  func() []string // folders that users may mount
}

// Opener checks and opens the files of users. Safe for concurrent use.
type Opener struct {
	cfg     Config
	opening chan struct{} // one token for each check of a user's files
}

// New returns an opener.
func New(cfg Config) *Opener {
	return &Opener{cfg: cfg, opening: make(chan struct{}, maxOpening)}
}

// Allowed returns the folders that users may mount.
func (o *Opener) Allowed() []string { return o.cfg.Allowed() }

// MayMountAll reports whether a user's mounts need no check. This holds for root, and for
// the user that the daemon runs as, who can use the engine directly.
func MayMountAll(uid int) bool {
	return rights.Policy{Account: os.Geteuid()}.MayServer(rights.MountAll, rights.Caller{UID: uid})
}

// CheckPaths refuses mounts that nobody can have.
func CheckPaths(list []api.Mount) error {
	for _, m := range list {
		if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) {
			return request.Errorf(422, "-v %s:%s: both paths must be absolute", m.Source, m.Target)
		}
		if filepath.Clean(m.Target) == "/" {
			return request.Errorf(422, "-v %s:%s: a folder cannot take the place of the container's root; write for example -v %s:/data", m.Source, m.Target, m.Source)
		}
	}
	return nil
}

// Check returns a function that checks a submission's mounts and opens each source
// once. It only reports mistakes early; the check at the launch decides.
func (o *Opener) Check(ctx context.Context, who request.Caller) func([]api.Mount) error {
	known := map[string]error{}
	return func(list []api.Mount) error {
		for _, m := range list {
			err, ok := known[m.Source]
			if !ok {
				err = o.mayMount(ctx, who, m.Source)
				known[m.Source] = err
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (o *Opener) mayMount(ctx context.Context, who request.Caller, source string) error {
	if MayMountAll(who.UID) {
		if _, err := os.Stat(source); err != nil {
			return request.Errorf(422, "-v %s: %v", source, errors.Unwrap(err))
		}
		return nil
	}
	if err := o.SameFiles(); err != nil && !errors.Is(err, containers.ErrRemote) && !errors.Is(err, containers.ErrUnavailable) {
		return request.Errorf(403, "-v %s: %v; only root may mount folders until an administrator changes that", source, err)
	}
	s, err := o.Open(ctx, who, o.cfg.Allowed(), source, SubmitLimit)
	if err == nil {
		s.Close()
		return nil
	}
	text := "-v " + source + ": " + o.Refusal(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrHang):
		return request.Errorf(503, "%s", text)
	case NotMountable(err) && !errors.Is(err, unix.ENOENT):
		return request.Errorf(403, "%s", text)
	}
	return request.Errorf(422, "%s", text)
}

// ErrHang reports that a file system does not answer.
var ErrHang = errors.New("its file system does not answer; try again when it does")

// Open opens a file or folder as a user, if it lies in an allowed folder.
// After limit it returns ErrHang.
func (o *Opener) Open(ctx context.Context, who request.Caller, allowed []string, source string, limit time.Duration) (*mounts.Source, error) {
	select {
	case o.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(limit):
		return nil, ErrHang
	}
	type opened struct {
		s   *mounts.Source
		err error
	}
	done := make(chan opened, 1)
	go func() { // this goroutine ends when the file system answers
		s, err := mounts.Gate{Allowed: allowed}.Open(User(who), source)
		<-o.opening
		done <- opened{s, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrHang)
	defer cancel()
	select {
	case got := <-done:
		return got.s, got.err
	case <-ctx.Done():
		go func() {
			if got := <-done; got.err == nil {
				got.s.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// User returns a caller as the user who opens files.
func User(who request.Caller) mounts.User {
	return mounts.User{UID: who.UID, GID: who.GID, Groups: who.GIDs, Home: who.Home}
}

// NotMountable reports whether the request itself is wrong, so that another try does not
// help.
func NotMountable(err error) bool {
	var outside *mounts.OutsideError
	if errors.As(err, &outside) || errors.Is(err, mounts.ErrOthers) {
		return true
	}
	for _, e := range []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Refusal returns a text with the reason why a mount is refused, and with the allowed
// mounts.
func (o *Opener) Refusal(err error) string {
	if errors.Is(err, unix.EACCES) {
		return fmt.Sprintf("you cannot reach it yourself (permission denied); you may mount only below %s, and only what you can reach", strings.Join(o.cfg.Allowed(), ", "))
	}
	return err.Error()
}

// SameFiles returns nil if the engine sees the same files as the daemon.
func (o *Opener) SameFiles() error {
	if near, ok := engine.As[containers.Near](o.cfg.Driver); ok && o.cfg.MountDir != "" {
		return near.SameFiles()
	}
	return nil
}
