package compose

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"carma/runner/api"
)

// Limits on the host's files that are copied into a helper instead of being mounted
// (files, and folders mounted read-only): bytes and number of files per helper.
const (
	maxCopied      = 256 << 10
	maxCopiedFiles = 200
)

// wall restricts the mounts of helpers of ordinary users. A program that is another user
// in its container could read and write mounted files as that user. So a helper with a
// folder of the host runs as its owner. Files, and small folders that are mounted
// read-only, need no mount: they are copied, with their owner's rights, and the helper
// keeps the users of its image.
func (t *translator) wall(s *Service) {
	r := &s.Submit
	if t.options.UID == 0 || len(r.Mounts) == 0 {
		return
	}
	line, key := t.at(s.Name, "volumes")
	if copied, ok := t.copies(s); ok {
		for _, m := range r.Mounts {
			if !m.ReadOnly {
				t.say(line, key, m.Source+" is copied into the container; what changes there does not come back")
			}
		}
		s.Helper.Files, r.Mounts = append(s.Helper.Files, copied...), nil
		return
	}
	own := fmt.Sprintf("%d:%d", t.options.UID, t.options.GID)
	switch {
	case r.User == own || r.User == strconv.Itoa(t.options.UID):
	case r.User == "":
		t.say(line, key, "it has a folder of the host, so it runs as you, "+own+", not as its image's user; a volume has no such limit")
	default:
		t.say(line, key, "it has a folder of the host, so it runs as you, "+own+", not as user "+r.User+"; a volume has no such limit")
	}
	r.User = ""
	if len(s.Helper.CapAdd) > 0 || len(s.Helper.Groups) > 0 {
		t.say(line, key, "it has a folder of the host, so it has neither capabilities nor groups beside yours")
		s.Helper.CapAdd, s.Helper.Groups = nil, nil
	}
}

// copies returns the files that a helper would mount. It returns false if they are too
// many, or if the helper may write to a folder.
func (t *translator) copies(s *Service) (files []api.SuiteFile, ok bool) {
	size := 0
	for _, m := range s.Submit.Mounts {
		if slices.Contains(s.Create, m.Source) {
			return nil, false
		}
		err := filepath.WalkDir(m.Source, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if info.IsDir() {
				if !m.ReadOnly || path != m.Source && e.Type()&fs.ModeSymlink != 0 {
					return errNotCopied
				}
				return nil
			}
			if size += int(min(info.Size(), maxCopied+1)); !info.Mode().IsRegular() || size > maxCopied || len(files) == maxCopiedFiles {
				return errNotCopied
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(m.Source, path)
			if err != nil {
				return err
			}
			// Readable by everybody in the container, where only its own programs run.
			files = append(files, api.SuiteFile{Path: filepath.Join(m.Target, rel), Content: content, UID: -1, GID: -1, Mode: uint32(info.Mode().Perm()) | 0o444, Writable: !m.ReadOnly})
			return nil
		})
		if err != nil {
			return nil, false
		}
	}
	return files, true
}

var errNotCopied = fmt.Errorf("not copied")
