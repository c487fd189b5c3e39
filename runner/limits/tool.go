package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"carma/internal/lazyregexp"
)

// Binary is the program of the driver that sets limits.
const Binary = "nvidia-smi"

// mib is the unit of the tool.
const mib = 1 << 20

// answerLimit bounds one call of the tool. With persistence mode off the driver
// initializes the GPU first.
const answerLimit = 20 * time.Second

// Limit is the limit of a control group on one GPU, in bytes.
type Limit struct {
	// Soft is guaranteed to the group. If a client below its own soft limit needs memory,
	// MPS may end a client above its soft limit.
	Soft int64
	// Hard is the memory use at which allocations fail. With 0 they fail only when the card
	// is full.
	Hard int64
}

// Tool is `nvidia-smi memory-limits`, of driver 615 and later. Only this type contains
// its command line, which follows NVIDIA's guide to MPS, "MPS v3 Memory Partitioning".
// The zero value is the tool in PATH.
type Tool struct {
	Path string // of the program; empty means [Binary] in PATH
}

// set returns the arguments that set a limit. The sub-command must come first;
// figures are whole MiB or "max".
func (t Tool) set(group, gpu string, l Limit) []string {
	hard := "max"
	if l.Hard > 0 {
		hard = strconv.FormatInt((l.Hard+mib-1)/mib, 10)
	}
	return []string{"memory-limits", "--set", "--namespace", group,
		"--soft-limit", strconv.FormatInt(l.Soft/mib, 10), "--hard-limit", hard, "-i", gpu}
}

// Set limits a control group, a folder below /sys/fs/cgroup, on one GPU, by UUID. It
// needs root. A later limit replaces an earlier one.
func (t Tool) Set(ctx context.Context, group, gpu string, l Limit) error {
	_, err := t.run(ctx, t.set(group, gpu, l)...)
	return err
}

// Get returns a control group's limit on one GPU, as the tool reports it.
func (t Tool) Get(ctx context.Context, group, gpu string) (Limit, error) {
	out, err := t.run(ctx, "memory-limits", "--get", "--namespace", group, "-i", gpu)
	if err != nil {
		return Limit{}, err
	}
	return parseLimit(out)
}

var limitLine = lazyregexp.New(`(?mi)^\s*(soft|hard) limit\s*:\s*(?:(\d+)\s*MiB|(\w+))\s*$`)

// parseLimit reads lines such as "soft limit: 4096 MiB" and "hard limit: max".
func parseLimit(out string) (l Limit, err error) {
	found := map[string]bool{}
	for _, m := range limitLine().FindAllStringSubmatch(out, -1) {
		which := strings.ToLower(m[1])
		var n int64
		switch {
		case m[2] != "":
			if n, err = strconv.ParseInt(m[2], 10, 43); err != nil {
				return Limit{}, fmt.Errorf("%s limit %s MiB: %w", which, m[2], err)
			}
		case !strings.EqualFold(m[3], "max"):
			return Limit{}, fmt.Errorf("%s limit %q is neither in MiB nor max", which, m[3])
		}
		if found[which] = true; which == "soft" {
			l.Soft = n * mib
		} else {
			l.Hard = n * mib
		}
	}
	if !found["soft"] || !found["hard"] {
		return Limit{}, fmt.Errorf("no soft and hard limit in %q", brief(out))
	}
	return l, nil
}

// Version returns the driver's version, such as "615.36.01".
func (t Tool) Version(ctx context.Context) (string, error) {
	out, err := t.run(ctx, "--version")
	if err != nil {
		return "", err
	}
	if m := versionLine().FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "", fmt.Errorf("no driver version in %q", brief(out))
}

var versionLine = lazyregexp.New(`(?mi)^\s*driver version\s*:\s*(\d+(?:\.\d+)*)\s*$`)

// Knows returns nil if the tool has the sub-command, else an error with the tool's answer.
func (t Tool) Knows(ctx context.Context) error {
	_, err := t.run(ctx, "memory-limits", "--help")
	return err
}

func (t Tool) path() string { return cmp.Or(t.Path, Binary) }

func (t Tool) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.path(), args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out), nil
	}
	what := t.path() + " " + strings.Join(args, " ")
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("%s: no answer within %s", what, answerLimit)
	}
	if text := brief(string(out)); text != "" {
		return "", fmt.Errorf("%s: %s", what, text)
	}
	return "", fmt.Errorf("%s: %w", what, err)
}

// brief returns a tool's output in one line.
func brief(out string) string {
	text := strings.Join(strings.Fields(out), " ")
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return text
}
