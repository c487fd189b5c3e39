package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// suspend takes CUDA processes off the card and puts them back, by the driver's
// checkpoint functions. suspend.py does that. It writes each result at once, so
// that a hanging call loses only itself.
func (s *session) suspend(ctx context.Context) error {
	if s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	if s.card == nil && len(s.env) == 0 {
		return omitf("a simulated GPU has no driver")
	}
	file := filepath.Join(s.work, "suspend.csv")
	args := append([]string{filepath.Join(s.programs, "suspend.py"), file}, s.plan.suspend...)
	if s.noMPS() == "" {
		args = append(args, "mps") // this comes last, because its after-effects are unknown
	}
	out, err := s.inPython(ctx, args...).CombinedOutput()
	fmt.Fprintf(s.file, "--- suspend.py: %v\n%s--- end of it\n", err, out)
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		return errors.Join(fmt.Errorf("suspend.py: %w: %s", err, lastLine(string(out))), readErr)
	}
	if err := os.WriteFile(filepath.Join(s.out, "suspend.csv"), text, 0o644); err != nil {
		return err
	}
	opened, readErr := os.Open(file)
	if readErr != nil {
		return readErr
	}
	defer func() { _ = opened.Close() }()
	s.report.Suspended, readErr = csv.NewReader(opened).ReadAll()
	return errors.Join(err, readErr)
}
