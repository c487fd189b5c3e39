package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// The scheme contains only the API groups in use, and is made when it is first needed. With
// client-go's clients of all groups the program would be 15 MB larger.
var (
	scheme   = runtime.NewScheme()
	codecs   = serializer.NewCodecFactory(scheme)
	register = sync.OnceValue(func() error {
		// client-go also writes the errors that it returns to standard error.
		klog.SetLogger(klog.New(nil))
		for _, add := range []func(*runtime.Scheme) error{
			corev1.AddToScheme, resourcev1.AddToScheme, coordinationv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, batchv1.AddToScheme,
		} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		return nil
	})
	parameters = runtime.NewParameterCodec(scheme)
)

// client sends requests to the cluster. Its watches, and the goroutines that read them, end
// when close is called.
type client struct {
	ns     *manifest.Namespaces
	config *rest.Config

	core           rest.Interface // core group: pods, nodes, events
	resource       rest.Interface // resource group: claims, slices
	coordination   rest.Interface // coordination group: leases
	authentication rest.Interface // reviews of users' tokens
	authorization  rest.Interface // reviews of users' rights
	batch          rest.Interface // batch group: Jobs

	ctx   context.Context // cancelled by close
	close context.CancelFunc
	tasks sync.WaitGroup
}

func newClient(config *rest.Config, ns *manifest.Namespaces) (*client, error) {
	c := &client{ns: ns, config: config}
	c.ctx, c.close = context.WithCancel(context.Background())
	return c, c.connect()
}

func (c *client) connect() error {
	if err := register(); err != nil {
		return err
	}
	config := c.config
	// All groups share one connection.
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	one := func(gv schema.GroupVersion, path string) (rest.Interface, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath = &gv, path
		c.NegotiatedSerializer = codecs.WithoutConversion()
		c.UserAgent = manifest.Owner
		// The cluster stores objects as protobuf, so it need not convert them from and to JSON.
		c.AcceptContentTypes, c.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
		// client-go's defaults, 5 requests a second, suit interactive use.
		c.QPS, c.Burst = 500, 1000
		return rest.RESTClientForConfigAndClient(c, http)
	}
	if c.core, err = one(corev1.SchemeGroupVersion, "/api"); err != nil {
		return err
	}
	if c.resource, err = one(resourcev1.SchemeGroupVersion, "/apis"); err != nil {
		return err
	}
	if c.batch, err = one(batchv1.SchemeGroupVersion, "/apis"); err != nil {
		return err
	}
	if c.coordination, err = one(coordinationv1.SchemeGroupVersion, "/apis"); err != nil {
		return err
	}
	if c.authentication, err = one(authenticationv1.SchemeGroupVersion, "/apis"); err != nil {
		return err
	}
	c.authorization, err = one(authorizationv1.SchemeGroupVersion, "/apis")
	return err
}

// fail wraps an error of the client in the matching error of package containers. what names the
// failed call.
func fail(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	msg := containers.CleanMessage(err.Error())
	var status *apierrors.StatusError
	answered := errors.As(err, &status)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case apierrors.IsNotFound(err) && isNamespace(status):
		return fmt.Errorf("%s: %w", what, &containers.StartFault{Scope: containers.ScopeEngine, Code: "namespace",
			Cause: "the cluster has not the namespace of tasks", Remedy: "kubectl create namespace", Text: msg})
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, msg)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w", what, &containers.StartFault{Scope: containers.ScopeEngine, Code: "rights",
			Cause: "the cluster does not allow it", Remedy: "give carma the rights listed in docs/kubernetes.md", Text: msg})
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrInvalid, msg)
	case !answered || unavailable(err):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	}
	return fmt.Errorf("%s: %s", what, msg)
}

// isNamespace reports whether the namespace itself was not found.
func isNamespace(s *apierrors.StatusError) bool {
	return s != nil && s.ErrStatus.Details != nil && s.ErrStatus.Details.Kind == "namespaces"
}

// unavailable reports whether the apiserver, or a service that it depends on, does not answer
// at the moment.
func unavailable(err error) bool {
	var netErr net.Error
	var urlErr *url.Error
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		httpCode(err) >= http.StatusInternalServerError ||
		errors.As(err, &netErr) || errors.As(err, &urlErr)
}

func httpCode(err error) int32 {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return s.ErrStatus.Code
	}
	return 0
}

// pod reads a container's pod. It returns not found for a pod with the same name and another
// uid.
func (c *client) pod(ctx context.Context, what, id string) (*corev1.Pod, error) {
	uid, at := c.ns.Split(id)
	if at.Name == "" {
		return nil, fmt.Errorf("%s: %w", what, containers.ErrNotFound)
	}
	pod, err := c.podNamed(ctx, at)
	if err != nil {
		return nil, fail(ctx, what, err)
	}
	if string(pod.UID) != uid {
		return nil, fmt.Errorf("%s: %w: another pod has its name", what, containers.ErrNotFound)
	}
	return pod, nil
}

func (c *client) podNamed(ctx context.Context, at types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, c.pods(c.core.Get(), at).Do(ctx).Into(pod)
}

// patchPod changes a pod by a JSON merge patch.
func (c *client) patchPod(ctx context.Context, pod *corev1.Pod, patch string) (*corev1.Pod, error) {
	changed := &corev1.Pod{}
	err := c.pods(c.core.Patch(types.MergePatchType), manifest.HomeOf(pod)).Body([]byte(patch)).Do(ctx).Into(changed)
	return changed, err
}

// isGone reports whether the pod does not exist any more.
func isGone(err error) bool { return errors.Is(err, containers.ErrNotFound) }

// jobs sets the path of a namespace's Jobs, or of one Job if at has a name.
func (c *client) jobs(r *rest.Request, at types.NamespacedName) *rest.Request {
	r = r.Namespace(at.Namespace).Resource("jobs")
	if at.Name != "" {
		r = r.Name(at.Name)
	}
	return r
}

// pods sets the path of a namespace's pods, or of one pod if at has a name.
func (c *client) pods(r *rest.Request, at types.NamespacedName) *rest.Request {
	r = r.Namespace(at.Namespace).Resource("pods")
	if at.Name != "" {
		r = r.Name(at.Name)
	}
	return r
}

// claims sets the path of the claim that has a pod's name.
func (c *client) claims(r *rest.Request, at types.NamespacedName) *rest.Request {
	return r.Namespace(at.Namespace).Resource("resourceclaims").Name(at.Name)
}
