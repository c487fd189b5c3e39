package compose

import (
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// build reads the build settings of an image. An image without a name is named after
// suite and service, as in Compose.
func (t *translator) build(c types.ServiceConfig, s *Service) {
	b := c.Build
	if b == nil {
		if c.Image == "" {
			line, key := t.at(c.Name)
			t.refuse(line, key, "neither image nor build; a task runs a container image")
		}
		return
	}
	if strings.Contains(b.Context, "://") || strings.HasPrefix(b.Context, "git@") {
		t.refuseAt(c.Name, b.Context+" is not a folder of this machine", "build")
	}
	if b.Dockerfile != "" && b.DockerfileInline != "" {
		t.refuseAt(c.Name, "dockerfile as well; leave one of them out", "build", "dockerfile_inline")
	}
	if s.Submit.Image == "" {
		s.Submit.Image = t.project.Name + "-" + c.Name
	}
	s.Build = &Build{
		Context: b.Context, Dockerfile: b.Dockerfile, Inline: b.DockerfileInline, Target: b.Target, Network: b.Network,
		Args: b.Args, Labels: b.Labels, Tags: append([]string{s.Submit.Image}, b.Tags...),
		ShmSize: int64(b.ShmSize), NoCache: b.NoCache, Pull: b.Pull, Always: c.PullPolicy == types.PullPolicyBuild,
	}
	if b.DockerfileInline != "" {
		s.Build.Dockerfile = ""
	}
}
