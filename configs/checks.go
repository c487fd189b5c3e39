package configs

import (
	"carma/configs/nearest"
	"carma/configs/patterns"
	"carma/configs/servers"
	"fmt"
	"net"
	"net/url"
	"path"
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

// maxSocketPath is the kernel's limit for the path of a unix socket in bytes,
// without the final zero.
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
	if source == "auto" || source == "nvml" || source == "cluster" {
		return nil
	}
	if list, ok := strings.CutPrefix(source, "nvml:"); ok {
		return validGPUs(list)
	}
	return fmt.Errorf("unknown source %q; it is auto, nvml, nvml:0,1, cluster or sim:SERVER, for example sim:dgx-station-a100", source)
}

// validGPUs checks a list of GPUs, each an index or UUID of nvidia-smi.
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

// validPage accepts the URL of a page, or an empty text.
func validPage(page string) error {
	if page == "" {
		return nil
	}
	if u, err := url.Parse(page); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not the address of a page; write for example http://localhost:9400/metrics", page)
	}
	return nil
}

// absoluteOrNone accepts an absolute path, or none.
func absoluteOrNone(path string) error {
	if path == "" {
		return nil
	}
	return absolute(path)
}

// validAddress accepts off, or a host and port to listen at.
func validAddress(address string) error {
	if address == "off" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	n, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || wrong != nil || n == 0:
		return fmt.Errorf("%q is not an address; write for example 127.0.0.1:9810, or off", address)
	case host == "":
		return fmt.Errorf("%q is open to every network of the machine; write 127.0.0.1:%s, or 0.0.0.0:%s if that is meant", address, port, port)
	}
	return nil
}

// between refuses a number outside of least to most. off tells what 0 means.
func between(v, least, most float64, off string) error {
	if v >= least && v <= most {
		return nil
	}
	return fmt.Errorf("%v is not between %v and %v; nearest: %v; %s", v, least, most, min(max(v, least), most), off)
}

// devicePatterns checks patterns of devices.
func devicePatterns(list []string) error {
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil || !strings.HasPrefix(p, "/dev/") || path.Clean(p) != p {
			return fmt.Errorf("%q is not a pattern of paths below /dev; write for example /dev/infiniband/*", p)
		}
	}
	return nil
}

var ulimitMost = patterns.New(`^[a-z]+(=[0-9]{1,18})?$`)

// ulimits checks the form of limits; the daemon checks their names.
func ulimits(list []string) error {
	for _, u := range list {
		if !ulimitMost().MatchString(u) {
			return fmt.Errorf("%q is not name=most or name; write for example memlock, or nofile=1048576", u)
		}
	}
	return nil
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
