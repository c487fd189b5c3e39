package httplimit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"carma/runner/api"
	"carma/runner/request"
)

// submissionKey is the key, in the context of a request, of the submission that
// was read from its body.
type submissionKey struct{}

// SubmissionFrom returns the submission of a request, which [LimitRequests] has read.
func SubmissionFrom(ctx context.Context) api.Submission {
	s, _ := ctx.Value(submissionKey{}).(api.Submission)
	return s
}

// ofSeveral reports whether the requests to a path are submissions of several tasks.
func ofSeveral(path string) bool { return strings.HasPrefix(path, "/v1/submissions") }

// readSubmission decodes a submission while it arrives. Only one task at a time
// is in memory as text. check may refuse each task.
func readSubmission(from io.Reader, check func(task any, at int) error) (api.Submission, error) {
	var s api.Submission
	r := &submissionReader{Decoder: json.NewDecoder(from), check: check}
	err := r.read(&s)
	var refused *request.Error
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return s, nil
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = request.Errorf(400, "the submission is no JSON: %v, at byte %d", err, r.InputOffset())
	case errors.As(err, &kind):
		err = request.Errorf(422, "the submission's %s cannot be a %s", r.field, kind.Value)
	case errors.As(err, &refused):
	default: // an error of the connection or of a task
	}
	_, _ = io.Copy(io.Discard, from) // a caller that still sends would not read the answer
	return api.Submission{}, err
}

// submissionReader reads one submission.
type submissionReader struct {
	*json.Decoder
	check  func(task any, at int) error
	field  string
	text   json.RawMessage // of one task
	values int
}

func (r *submissionReader) read(s *api.Submission) error {
	if err := r.begin('{', "an object with tasks"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return err
		}
		r.field, _ = key.(string)
		if seen[r.field] {
			return request.Errorf(422, "the submission has %s twice", r.field)
		}
		switch r.field {
		case "group":
			err = r.Decode(&s.Group)
		case "tasks":
			err = r.tasks(s)
		default:
			return request.Errorf(422, "a submission has no field %.40q; it has group and tasks", r.field)
		}
		if err != nil {
			return err
		}
		seen[r.field] = true
	}
	if _, err := r.Token(); err != nil {
		return err
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return request.Errorf(400, "something follows the submission, at byte %d", r.InputOffset())
	}
	return nil
}

// begin reads the first token of an object or a list.
func (r *submissionReader) begin(with json.Delim, what string) error {
	switch t, err := r.Token(); {
	case err != nil:
		return err
	case t != with:
		return request.Errorf(422, "%s is expected, at byte %d of the submission", what, r.InputOffset())
	}
	return nil
}

func (r *submissionReader) tasks(s *api.Submission) error {
	if err := r.begin('[', "a list of tasks"); err != nil {
		return err
	}
	for r.More() {
		if len(s.Tasks) == api.MaxTasks {
			return request.Errorf(422, "a submission has at most %d tasks; submit the others in another one", api.MaxTasks)
		}
		t, err := r.task(len(s.Tasks))
		if err != nil {
			return err
		}
		s.Tasks = append(s.Tasks, t)
	}
	_, err := r.Token()
	return err
}

// task reads the next task. Its values are counted before they are decoded.
func (r *submissionReader) task(at int) (t api.Submit, err error) {
	if err := r.Decode(&r.text); err != nil {
		return t, err
	}
	if err := checkValues(r.text); err != nil {
		return t, err
	}
	if r.values += count(r.text); r.values > maxValues {
		return t, request.Errorf(422, "the submission has more than %d values, the most that are taken at once; submit the tasks in several parts", maxValues)
	}
	var any any
	if err := json.Unmarshal(r.text, &any); err != nil {
		return t, err
	}
	if err := r.check(any, at); err != nil {
		return t, err
	}
	return t, json.Unmarshal(r.text, &t)
}

// countingReader counts the bytes read.
type countingReader struct {
	io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// patientReader reads from a connection and waits for the sender for at most left in
// total. The time between two reads does not count, because the sender does not cause it.
type patientReader struct {
	io.ReadCloser
	setTimeout func(time.Time) error
	left       time.Duration
}

func (p *patientReader) Read(b []byte) (int, error) {
	begun := time.Now()
	_ = p.setTimeout(begun.Add(p.left)) // not every writer has one
	n, err := p.ReadCloser.Read(b)
	p.left -= time.Since(begun)
	return n, err
}
