// Package contexts lists the daemons that commands can address: this machine's, at its
// socket, and clusters' daemons, over TLS.
package contexts

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
)

// Local is the name of the context that always exists: this machine's daemon.
const Local = "local"

// Context is a daemon of a cluster, and how its user reaches it. It contains no secrets,
// but may name files that do.
type Context struct {
	Name string `yaml:"name" json:"name"`
	// Host is https://host:port, or unix:///path.
	Host string `yaml:"host" json:"host"`
	// CA is the file with the certificates that may sign the daemon's, or empty for the
	// system's.
	CA string `yaml:"ca,omitempty" json:"ca,omitempty"`
	// Kubeconfig and KubeContext locate the user's token. If they are empty, the token is
	// found as kubectl finds it or, in a pod of the cluster, in the pod's own files. If
	// TokenFile is set, that file contains the token.
	Kubeconfig  string `yaml:"kubeconfig,omitempty" json:"kubeconfig,omitempty"`
	KubeContext string `yaml:"kube-context,omitempty" json:"kube_context,omitempty"`
	TokenFile   string `yaml:"token-file,omitempty" json:"token_file,omitempty"`
	// Namespace is the namespace of tasks that name none, or empty for the kubeconfig's.
	Namespace string `yaml:"namespace,omitempty" json:"namespace,omitempty"`
}

// List is a user's file of contexts.
type List struct {
	// Current is the default context of commands, or empty for Local.
	Current  string    `yaml:"current,omitempty"`
	Contexts []Context `yaml:"contexts"`
}

// Path returns the file with the user's contexts.
func Path() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "carma", "contexts.yaml"), nil
}

// Read reads the user's contexts; without a file there are none.
func Read() (List, error) {
	var l List
	path, err := Path()
	if err != nil {
		return l, nil // without a home there is no file
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if err := yaml.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("%s: %w; mend it, or remove it and add the contexts again", path, err)
	}
	for _, c := range l.Contexts {
		if err := c.Check(); err != nil {
			return l, fmt.Errorf("%s: context %s: %w", path, c.Name, err)
		}
	}
	return l, nil
}

// Write replaces the file. Only its user may read it.
func (l List) Write() error {
	path, err := Path()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	made, err := os.CreateTemp(filepath.Dir(path), ".contexts-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = made.Write(text)
	if err = errors.Join(err, made.Close()); err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		_ = os.Remove(made.Name())
	}
	return err
}

// Names returns all contexts, Local first.
func (l List) Names() []string {
	names := []string{Local}
	for _, c := range l.Contexts {
		names = append(names, c.Name)
	}
	return names
}

// Find returns a context. The error contains the nearest name.
func (l List) Find(name string) (Context, error) {
	if name == Local {
		return Context{Name: Local}, nil
	}
	i := slices.IndexFunc(l.Contexts, func(c Context) bool { return c.Name == name })
	if i < 0 {
		return Context{}, fmt.Errorf("no context: %w", suggest.OneOf(name, l.Names()))
	}
	return l.Contexts[i], nil
}

// ErrHost means that an address has no known form.
var ErrHost = errors.New("write https://host:port, or unix:///path of a socket")

// ParseHost parses a host: a socket's path, or the URL of a daemon.
func ParseHost(host string) (socket, address string, err error) {
	u, err := url.Parse(host)
	if err != nil {
		return "", "", fmt.Errorf("%q: %w", host, ErrHost)
	}
	switch {
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return filepath.Clean(u.Path), "", nil
	case u.Scheme == "https" && u.Hostname() != "" && u.Port() != "" && strings.Trim(u.Path, "/") == "" && u.User == nil && u.RawQuery == "":
		return "", "https://" + u.Host, nil
	case u.Scheme == "http":
		return "", "", fmt.Errorf("%q would send your token in the clear: %w", host, ErrHost)
	}
	return "", "", fmt.Errorf("%q: %w", host, ErrHost)
}

// Check returns an error if a context is invalid.
func (c Context) Check() error {
	socket, _, err := ParseHost(c.Host)
	if err != nil {
		return err
	}
	if socket != "" && (c.CA != "" || c.Kubeconfig != "" || c.KubeContext != "" || c.TokenFile != "") {
		return errors.New("a socket needs no authority and no token: its daemon asks the kernel who you are")
	}
	if c.TokenFile != "" && (c.Kubeconfig != "" || c.KubeContext != "") {
		return errors.New("the token is in a file of its own, or in a kubeconfig; name one of them")
	}
	return nil
}
