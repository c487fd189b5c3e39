package containerstest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Registry is a registry with one image on this machine's loopback. It requires a login.
type Registry struct {
	// Image is the name of the image there: 127.0.0.1:PORT/team/tool:1.
	Image string
	// Address is 127.0.0.1:PORT.
	Address string

	server *http.Server
	mu     sync.Mutex
	users  map[string]string // passwords
	served map[string]int    // number of manifests served, by user
}

// NewRegistry starts a registry with the image of a tar file of [Archive], for users with
// these passwords. The caller must close it.
func NewRegistry(archive []byte, users map[string]string) (*Registry, error) {
	config, layer, err := parts(archive)
	if err != nil {
		return nil, err
	}
	blobs := map[string][]byte{digest(config): config, digest(layer): layer}
	const oci = "application/vnd.oci.image."
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": oci + "manifest.v1+json",
		"config": map[string]any{"mediaType": oci + "config.v1+json", "digest": digest(config), "size": len(config)},
		"layers": []any{map[string]any{"mediaType": oci + "layer.v1.tar", "digest": digest(layer), "size": len(layer)}},
	})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Registry{Address: l.Addr().String(), Image: l.Addr().String() + "/team/tool:1", users: users, served: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v2/team/tool/manifests/{ref}", func(w http.ResponseWriter, req *http.Request) {
		if ref := req.PathValue("ref"); ref != "1" && ref != digest(manifest) {
			http.NotFound(w, req)
			return
		}
		name, _, _ := req.BasicAuth()
		r.mu.Lock()
		r.served[name]++
		r.mu.Unlock()
		w.Header().Set("Content-Type", oci+"manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digest(manifest))
		w.Header().Set("Content-Length", fmt.Sprint(len(manifest)))
		_, _ = w.Write(manifest)
	})
	mux.HandleFunc("GET /v2/team/tool/blobs/{digest}", func(w http.ResponseWriter, req *http.Request) {
		b, ok := blobs[req.PathValue("digest")]
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b)
	})
	r.server = &http.Server{Handler: r.login(mux)}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

// Close stops the registry.
func (r *Registry) Close() error { return r.server.Close() }

// Served returns how many times the registry has served its image's manifest to a user.
func (r *Registry) Served(user string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served[user]
}

func (r *Registry) login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, password, _ := req.BasicAuth()
		if password == "" || r.users[name] != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// parts returns the configuration and the layer in a tar file of [Archive].
func parts(archive []byte) (config, layer []byte, err error) {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return config, layer, nil
		}
		if err != nil {
			return nil, nil, err
		}
		b, err := io.ReadAll(r)
		switch {
		case err != nil:
			return nil, nil, err
		case h.Name == "layer.tar":
			layer = b
		case h.Name != "manifest.json" && strings.HasSuffix(h.Name, ".json"):
			config = b
		}
	}
}
