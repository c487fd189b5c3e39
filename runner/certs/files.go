// Package certs provides the daemon's certificate for TLS: from an administrator's files,
// which are read again when they are renewed, or made by the daemon.
package certs

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Get returns the certificate for a new connection, see [tls.Config].
type Get func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Files serves a certificate from two files in PEM. For each new connection, the files
// are checked, and read again if one of them has changed. While the new files do not
// match each other, as during a renewal, the old certificate is served. trouble, if not
// nil, is called once for each such pair.
func Files(certificate, key string, trouble func(error)) (Get, error) {
	f := &files{paths: [2]string{certificate, key}, trouble: trouble}
	if err := f.read(f.looks()); err != nil {
		return nil, err
	}
	return f.get, nil
}

type files struct {
	paths   [2]string
	trouble func(error)

	mu   sync.Mutex
	seen [2]look
	now  *tls.Certificate
}

// look contains the size and modification time of a file.
type look struct {
	at   time.Time
	size int64
}

func (f *files) looks() (all [2]look) {
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil { // after a renewal, a link points to another file
			all[i] = look{info.ModTime(), info.Size()}
		}
	}
	return all
}

func (f *files) read(seen [2]look) error {
	f.seen = seen
	pair, err := tls.LoadX509KeyPair(f.paths[0], f.paths[1])
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.paths[0], f.paths[1], err)
	}
	f.now = &pair
	return nil
}

func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seen := f.looks(); seen != f.seen {
		if err := f.read(seen); err != nil && f.trouble != nil {
			f.trouble(err)
		}
	}
	return f.now, nil
}
