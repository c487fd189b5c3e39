package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"carma/cmd/carma/settings"
	"carma/runner/journal"
	"carma/runner/tasklog"
)

// outputKey is the journal's key for the folders in which output was stored.
const outputKey = "output-folders"

// openOutput opens the store of the tasks' output. The journal records the folders that
// may contain some, so that a change of output-dir hides nothing.
func openOutput(config settings.Config, j *journal.Journal) (*tasklog.Store, error) {
	dir := config.OutputDir
	inData := filepath.Join(config.DataDir, "logs")
	if dir == "" {
		dir = inData
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if inData, err = filepath.Abs(inData); err != nil {
		return nil, err
	}
	folders := []string{inData}
	switch b, err := j.Meta(outputKey); {
	case err == nil:
		if err := json.Unmarshal(b, &folders); err != nil {
			return nil, fmt.Errorf("the journal's list of output folders: %w", err)
		}
	case !errors.Is(err, journal.ErrNotFound):
		return nil, err
	}
	if !slices.Contains(folders, dir) {
		b, err := json.Marshal(append(slices.Clone(folders), dir))
		if err == nil {
			err = j.SetMeta(outputKey, b)
		}
		if err != nil && !errors.Is(err, journal.ErrFull) { // the next start records it
			return nil, err
		}
	}
	former := slices.DeleteFunc(folders, func(f string) bool { return f == dir })
	return tasklog.New(dir, outputLimits(config), former...), nil
}

func outputLimits(config settings.Config) tasklog.Limits {
	return tasklog.Limits{
		Attempt: int64(config.LogBytes), Task: int64(config.OutputTask), User: int64(config.OutputUser),
		Total: int64(config.OutputTotal), Free: int64(config.OutputFree),
	}
}
