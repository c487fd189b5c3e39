package configs

import (
	"carma/configs/nearest"
	"carma/configs/servers"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
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
	if list, ok := strings.CutPrefix(source, "nvml:"); ok {
		return validGPUs(list)
	}
	return fmt.Errorf("unknown source %q; it is auto, nvml, nvml:0,1 or sim:SERVER, for example sim:dgx-station-a100", source)
}

// validGPUs checks a list of GPUs as nvidia-smi names them: by index or UUID.
func validGPUs(list string) error {
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			continue
		}
		if upper := strings.ToUpper(name); strings.HasPrefix(upper, "GPU-") || strings.HasPrefix(upper, "MIG-") {
			continue
		}
		return fmt.Errorf("nvml: %q is neither an index nor a UUID of a GPU; nvidia-smi -L lists them; write for example nvml:0,1", name)
	}
	return nil
}

// validPage accepts the address of a page, or nothing.
func validPage(page string) error {
	if page == "" {
		return nil
	}
	if u, err := url.Parse(page); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not the address of a page; write for example http://localhost:9400/metrics", page)
	}
	return nil
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

func notBelow0(n int) error {
	if n < 0 {
		return fmt.Errorf("%d is negative; 0 is the least", n)
	}
	return nil
}
