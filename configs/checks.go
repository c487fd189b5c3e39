package configs

import (
	"carma/configs/nearest"
	"carma/configs/servers"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func oneOf(what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	if near := nearest.Near(word, words); len(near) > 0 {
		return fmt.Errorf("unknown %s %q; did you mean %s?", what, word, near[0])
	}
	return fmt.Errorf("unknown %s %q; it is one of %s", what, word, strings.Join(words, ", "))
}

func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not an absolute path", path)
	}
	return nil
}

// The kernel's limit for the path of a unix socket, without the final zero.
const maxSocketPath = 107

func validSocket(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("%q is longer than the %d bytes of a unix socket's path", path, maxSocketPath)
	}
	return absolute(path)
}

func validSource(source string) error {
	if server, ok := strings.CutPrefix(source, "sim:"); ok && server != "" {
		_, err := servers.Find(server)
		return err
	}
	if source == "auto" || source == "nvml" {
		return nil
	}
	return fmt.Errorf("unknown source %q; it is auto, nvml or sim:SERVER, for example sim:dgx-station-a100", source)
}

// between refuses a number outside its range; off says what 0 means.
func between(v, least, most float64, off string) error {
	if v >= least && v <= most {
		return nil
	}
	return fmt.Errorf("%v is not between %v and %v; nearest: %v; %s", v, least, most, min(max(v, least), most), off)
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is negative; write for example 10s", d)
	}
	return nil
}
