package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"carma/runner/web/look"
)

// embedded contains the page's files, except the ones shared with the replay's report
// (package look).
//
//go:embed page
var embedded embed.FS

// file is one file of the page, compressed once.
type file struct {
	kind, tag    string
	body, packed []byte
}

// kinds maps file name extensions to content types. The system's table of types may
// differ, so it is not used.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// Files returns the names and compressed sizes in bytes of the page's files.
func Files() map[string]int {
	sizes := map[string]int{}
	for name, f := range load() {
		sizes[name] = len(f.packed)
	}
	return sizes
}

func load() map[string]file {
	all := map[string]file{}
	own, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // cannot happen, the files are in the program
	}
	for _, from := range []fs.FS{own, look.Files()} {
		err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			body, err := fs.ReadFile(from, name)
			all["/"+name] = pack(name, body)
			return err
		})
		if err != nil {
			panic(err) // cannot happen, the files are in the program
		}
	}
	return all
}

func pack(name string, body []byte) file {
	sum := sha256.Sum256(body)
	kind := kinds[path.Ext(name)]
	if kind == "" {
		kind = mime.TypeByExtension(path.Ext(name))
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	z.Write(body)
	z.Close()
	return file{kind, `"` + hex.EncodeToString(sum[:8]) + `"`, body, packed.Bytes()}
}

// files serves the page's files. Browsers check each time whether a file has changed.
func files() http.Handler {
	all := load()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := req.URL.Path
		if name == "/" {
			name = "/index.html"
		}
		f, ok := all[name]
		if !ok || req.Method != http.MethodGet && req.Method != http.MethodHead {
			refuse(w, http.StatusNotFound, "the page has no such file")
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", f.tag)
		h.Set("Vary", "Accept-Encoding")
		if req.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := f.body
		if strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body = f.packed
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
}
