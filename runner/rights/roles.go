package rights

// FirstClusterUser is the lowest number of a user of a cluster. Numbers of the kernel's
// users are smaller.
const FirstClusterUser = 1 << 32

// OfCluster reports whether a number is the number of a user of a cluster. No process and
// no file has such a number.
func OfCluster(uid int) bool { return uid >= FirstClusterUser }

// Role is the caller's role according to the daemon.
type Role uint8

// The roles, by rising trust.
const (
	User         Role = 1 << iota // an ordinary user of the machine
	ClusterUser                   // an ordinary user of the cluster
	Admin                         // a member of admin-group
	ClusterAdmin                  // a user named in kubernetes-admins
	Account                       // the account that the daemon runs as, if it is not root
	Root
)

// Roles lists all roles, by rising trust.
func Roles() []Role { return []Role{User, ClusterUser, Admin, ClusterAdmin, Account, Root} }

func (r Role) String() string {
	switch r {
	case User:
		return "user"
	case ClusterUser:
		return "cluster user"
	case Admin:
		return "admin"
	case ClusterAdmin:
		return "cluster admin"
	case Account:
		return "daemon's account"
	case Root:
		return "root"
	}
	return "unknown role"
}

// Sets of roles.
const (
	administrators = Admin | ClusterAdmin | Account | Root
	everybody      = User | ClusterUser | administrators
	machineUsers   = everybody &^ ClusterUser
	trusted        = Account | Root
)

// Caller is the user who makes a request.
type Caller struct {
	UID  int
	Name string
	// Named reports whether the caller is a member of admin-group, or a user of the cluster
	// who is named in kubernetes-admins.
	Named bool
}

// Nobody returns a caller that neither the kernel nor the cluster identified. Such a
// caller owns nothing.
func Nobody() Caller { return Caller{UID: -1} }

// Owner is the owner of a task or suite.
type Owner struct {
	UID  int
	Name string
	// Open reports whether the owner has opened the task's output to everybody.
	Open bool
}

// Policy decides about rights.
type Policy struct {
	// Account is the user that the daemon runs as.
	Account int
}

// Role returns the role of a caller.
func (p Policy) Role(c Caller) Role {
	switch {
	case c.UID == 0:
		return Root
	case OfCluster(c.UID) && c.Named:
		return ClusterAdmin
	case OfCluster(c.UID):
		return ClusterUser
	case c.UID == p.Account:
		return Account
	case c.Named:
		return Admin
	}
	return User
}

// Administers reports whether a caller may act on the tasks of others.
func (p Policy) Administers(c Caller) bool { return p.Role(c)&administrators != 0 }

// Trusted reports whether a user of the machine can use the container engine without
// carma: root and the daemon's account.
func (p Policy) Trusted(uid int) bool { return uid == 0 || uid == p.Account }

// Owns reports whether something belongs to a caller. Numbers of users of a cluster are
// made from their names, so their names are compared too.
func Owns(c Caller, o Owner) bool {
	return c.UID == o.UID && (!OfCluster(c.UID) || c.Name == o.Name)
}
