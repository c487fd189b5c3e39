package run

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// noImage adds a hint to the error if the image's name is a program of this machine: the hint
// shows how to run that program without an image.
func noImage(image string, err error) error {
	var status *api.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "image") {
		return err
	}
	command := map[string]string{".py": "python " + image, ".sh": "bash " + image}[filepath.Ext(image)]
	if info, wrong := os.Stat(image); wrong != nil || !info.Mode().IsRegular() {
		if _, wrong := exec.LookPath(image); wrong != nil || strings.Contains(image, "/") {
			return err
		}
		command = image + " ..."
	}
	if command == "" {
		command = "./" + filepath.Clean(image)
		if filepath.IsAbs(image) {
			command = image
		}
	}
	return cli.Usagef("it is a program of this machine; without an image: carma run --host -- "+command+", or --conda ENV", "%s", err)
}
