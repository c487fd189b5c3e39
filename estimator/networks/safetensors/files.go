package safetensors

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the files of the transformers library.
const (
	single = "model.safetensors"
	index  = ".safetensors.index.json"
)

// Is reports whether a path has the name of a safetensors file or of an index.
func Is(path string) bool {
	return strings.HasSuffix(path, ".safetensors") || strings.HasSuffix(path, index)
}

// In returns the file in a folder that [Read] reads: the index, or the only file, or
// empty if there is none.
func In(folder string) string {
	for _, pattern := range []string{"*" + index, single, "*.safetensors"} {
		found, _ := filepath.Glob(filepath.Join(escaped(folder), pattern)) // the pattern is well-formed
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// escaped escapes the special characters of Glob in a folder's name.
func escaped(folder string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(folder)
}

// Read counts the parameters of a safetensors file, or of all files of an index. Errors
// have one line.
func Read(path string) (*Weights, error) {
	all := map[string]tensor{}
	if !strings.HasSuffix(path, index) {
		if err := readHeader(path, all); err != nil {
			return nil, err
		}
		return count(all), nil
	}
	files, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if err := readHeader(filepath.Join(filepath.Dir(path), name), all); err != nil {
			return nil, err
		}
	}
	return count(all), nil
}

// readIndex returns the files that an index names, in order.
func readIndex(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, wrong(path, "larger than %d MiB; an index has some megabytes at most", maxHeader>>20)
	}
	var parsed struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, wrong(path, "not JSON: %v", err)
	}
	if len(parsed.Map) == 0 {
		return nil, wrong(path, "weight_map: missing or empty; it names the file of each tensor")
	}
	names := map[string]bool{}
	for _, name := range parsed.Map {
		names[name] = true
	}
	if len(names) > maxFiles {
		return nil, wrong(path, "weight_map: %d files; at most %d", len(names), maxFiles)
	}
	files := slices.Sorted(maps.Keys(names))
	for _, name := range files {
		if filepath.Base(name) != name || !strings.HasSuffix(name, ".safetensors") {
			return nil, wrong(path, "weight_map: %q is not the name of a safetensors file in the same folder", clip(name))
		}
	}
	return files, nil
}

// clip shortens a name of untrusted input.
func clip(name string) string { return name[:min(len(name), 60)] }
