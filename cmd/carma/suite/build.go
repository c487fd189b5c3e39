package suite

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/suite/compose"
	"carma/containers/engines"
	"carma/runner/api"
)

// builder builds images with the Docker engine on which the tasks will run: the engine of
// DOCKER_HOST, as for the daemon.
type builder struct {
	*cli.App
	engine *client.Client
}

func (b *builder) close() {
	if b.engine != nil {
		_ = b.engine.Close()
	}
}

func (b *builder) connect(ctx context.Context, daemon *api.Client) error {
	if b.engine != nil {
		return nil
	}
	info, err := daemon.Info(ctx)
	if err != nil {
		return err
	}
	if engine, ok := engines.Named(info.Driver); !ok || !engine.Builds {
		return cli.Usagef("build the image yourself and write image", "the daemon runs tasks by %s, which builds no images", info.Driver)
	}
	b.engine, err = client.New(client.FromEnv)
	return err
}

// build builds a service's image, unless it exists.
func (b *builder) build(ctx context.Context, daemon *api.Client, s *compose.Service, always bool) error {
	if err := b.connect(ctx, daemon); err != nil {
		return err
	}
	_, err := b.engine.ImageInspect(ctx, s.Submit.Image)
	if err == nil && !always {
		return nil
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	b.Say("building %s of %s", s.Submit.Image, s.Build.Context)
	options := client.ImageBuildOptions{
		Tags: s.Build.Tags, Dockerfile: filepath.ToSlash(s.Build.Dockerfile), BuildArgs: s.Build.Args, Labels: s.Build.Labels, Target: s.Build.Target,
		NetworkMode: s.Build.Network, ShmSize: s.Build.ShmSize, NoCache: s.Build.NoCache, PullParent: s.Build.Pull, Remove: true,
		Version: build.BuilderV1,
	}
	if s.Build.Inline != "" {
		options.Dockerfile = inlineName
	}
	content, send := io.Pipe()
	go func() { send.CloseWithError(packContext(send, s.Build)) }() // ends when the engine has read everything or the pipe is closed
	answer, err := b.engine.ImageBuild(ctx, content, options)
	if err == nil {
		defer answer.Body.Close()
		err = b.show(answer.Body)
	}
	_ = content.CloseWithError(errors.New("the build is over"))
	return err
}

// show prints the engine's messages about a build, on stderr.
func (b *builder) show(from io.Reader) error {
	for d := json.NewDecoder(from); ; {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if m.Error != "" {
			return cli.Usagef("", "%s", cli.OneLine(m.Error))
		}
		if text := strings.TrimRight(m.Stream, "\n"); text != "" {
			for line := range strings.SplitSeq(text, "\n") {
				b.Say("build: %s", cli.Printable(line))
			}
		}
	}
}

// inlineName is the name of dockerfile_inline in the context.
const inlineName = ".carma.Dockerfile"

// packContext writes a build's folder as a tar, without the files excluded by
// .dockerignore.
func packContext(to io.Writer, b *compose.Build) error {
	w := tar.NewWriter(to)
	ignored, err := ignoredBy(b)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(b.Context, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(b.Context, path)
		if err != nil || rel == "." {
			return err
		}
		if rel != filepath.Clean(b.Dockerfile) && rel != ".dockerignore" {
			if out, err := ignored.MatchesOrParentMatches(rel); err != nil {
				return err
			} else if out && entry.IsDir() && !ignored.Exclusions() {
				return filepath.SkipDir
			} else if out {
				return nil
			}
		}
		return packEntry(w, path, rel, entry)
	})
	if err != nil {
		return err
	}
	if b.Inline != "" {
		if err := w.WriteHeader(&tar.Header{Name: inlineName, Mode: 0o644, Size: int64(len(b.Inline))}); err != nil {
			return err
		}
		if _, err := io.WriteString(w, b.Inline); err != nil {
			return err
		}
	}
	return w.Close()
}

func ignoredBy(b *compose.Build) (*patternmatcher.PatternMatcher, error) {
	var patterns []string
	f, err := os.Open(filepath.Join(b.Context, ".dockerignore"))
	switch {
	case err == nil:
		defer f.Close()
		if patterns, err = ignorefile.ReadAll(f); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return patternmatcher.New(patterns)
}

func packEntry(w *tar.Writer, path, rel string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	case !mode.IsRegular() && !mode.IsDir():
		return nil // sockets and such
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = filepath.ToSlash(rel)
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
