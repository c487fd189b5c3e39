package submit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/cmd/carma/cli"
	"carma/configs/models"
	"carma/estimator/booking"
	"carma/estimator/networks"
	"carma/estimator/networks/named"
	"carma/runner/api"
)

// Model reads the file that a task's est-model names, if any, and puts its description
// into the request, because the daemon reads no files. A relative path starts at folder.
// The warnings list the assumptions.
func Model(s *api.Submit, folder string) (warnings []string, err error) {
	path, is, err := modelFile(s.EstModel, folder)
	if !is || err != nil {
		return nil, err
	}
	if alone := networks.WeightsAlone(path); alone != "" {
		return figures(s, alone)
	}
	o, err := s.Training()
	if err != nil {
		return nil, cli.Usagef("", "--%v", err)
	}
	o.Batch = s.BatchSize
	d, err := networks.Describe(path, o)
	if err != nil {
		return nil, cli.Usagef("", "--est-model: %s", readable(err))
	}
	s.EstModel, s.Network, s.Train = models.Clip(d.Name), d.Network, models.Texts(&d.Settings)
	for _, w := range d.Warnings {
		warnings = append(warnings, "--est-model "+s.EstModel+": "+w)
	}
	return warnings, nil
}

// figures puts the parameters of a file of weights into the request. Without a network
// only they are known, as with params.
func figures(s *api.Submit, path string) (warnings []string, err error) {
	w, notes, err := networks.Count(path)
	if err != nil {
		return nil, cli.Usagef("", "--est-model: %s", readable(err))
	}
	if s.Family == "" {
		return nil, cli.Usagef("put its config.json beside it, or name the file and add for example --family transformer", "--est-model %s: %s has %d parameters, but no layers", s.EstModel, w.File, w.Parameters())
	}
	s.EstModel, s.Params = "", w.Parameters()
	for _, note := range append([]string{w.String() + ", and no config.json: estimated by this number"}, notes...) {
		warnings = append(warnings, "--est-model "+w.File+": "+note)
	}
	return warnings, nil
}

// modelFile returns the path in an est-model. is is false if the text is a name. A word
// that looks like a path is a path; for other words a known name takes precedence over a
// file of that name.
func modelFile(ref, folder string) (path string, is bool, err error) {
	if ref == "" {
		return "", false, nil
	}
	path = cli.ExpandHome(ref)
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	asked := strings.HasPrefix(ref, ".") || strings.HasPrefix(ref, "~") || filepath.IsAbs(ref) || slices.Contains(modelEndings, filepath.Ext(ref))
	if !asked && (named.Known(ref) && !strings.Contains(ref, "/") || slices.Contains(booking.NewCatalogue().Names(), ref)) {
		return "", false, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && !asked:
		return "", false, nil // a name, whether the daemon knows it or not
	case errors.Is(err, fs.ErrNotExist):
		return "", false, cli.Usagef("carma models list shows the names", "--est-model %s: no such file", ref)
	case err != nil:
		return "", false, cli.Usagef("", "--est-model %s: %v", ref, cli.Reason(err))
	case info.IsDir() && (networks.IsFile(filepath.Join(path, "config.json")) || networks.Weights(path) != ""), info.Mode().IsRegular():
		return path, true, nil
	case !asked:
		return "", false, nil
	case info.IsDir():
		return "", false, cli.Usagef("", "--est-model %s: a folder without a config.json, and without safetensors files", ref)
	}
	return "", false, cli.Usagef("", "--est-model %s: not a file", ref)
}

// modelEndings lists the extensions of files that describe networks.
var modelEndings = []string{".json", ".onnx", ".txt", ".safetensors", ".log"}

// readable formats an error about a file, without the name of the system call.
func readable(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Path + ": " + cli.Reason(err).Error()
	}
	return err.Error()
}
