package manifest

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
	"carma/containers/option"
)

// secure sets the user and the privileges of the program. They are the same as for a task on
// Docker: the runtime's seccomp filter and capabilities. A user other than root has no
// capabilities on Docker, and gets none if set-uid programs cannot raise privileges. So the
// capabilities are dropped here, and Pod Security's level restricted admits the pod.
func secure(spec containers.Spec, pod *corev1.Pod, c *corev1.Container) error {
	security := &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	c.SecurityContext = security
	err := asUser(spec, pod, security)
	if spec.NoNewPrivileges {
		no := false
		security.AllowPrivilegeEscalation = &no
		if security.RunAsUser != nil && *security.RunAsUser != 0 {
			yes := true
			security.RunAsNonRoot = &yes
			security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		}
	}
	return err
}

// asUser sets user and groups. A cluster accepts only numeric users.
func asUser(spec containers.Spec, pod *corev1.Pod, security *corev1.SecurityContext) error {
	if len(spec.Groups) > 0 {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		for _, g := range option.Each(spec.Groups, strconv.Atoi) {
			pod.Spec.SecurityContext.SupplementalGroups = append(pod.Spec.SecurityContext.SupplementalGroups, int64(g))
		}
	}
	if spec.User == "" {
		return nil
	}
	user, group, both := strings.Cut(spec.User, ":")
	uid, err := strconv.ParseInt(user, 10, 64)
	if err != nil {
		return fmt.Errorf("unable to find user %s: on a cluster a user is a number, like 1000:1000", spec.User)
	}
	security.RunAsUser = &uid
	if !both {
		return nil
	}
	gid, err := strconv.ParseInt(group, 10, 64)
	if err != nil {
		return fmt.Errorf("unable to find group %s: on a cluster a group is a number, like 1000:1000", group)
	}
	security.RunAsGroup = &gid
	return nil
}
