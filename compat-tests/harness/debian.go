package harness

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Debian makes sure of Debian's packages that a client is built with. Only root on a Debian can install them; anyone
// else is told which they are, unless that cannot be known, when the build itself has to say what it misses.
func Debian(packages ...string) error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return nil
	}
	var missing []string
	for _, p := range packages {
		out, err := exec.Command("dpkg-query", "-W", "-f=${Status}", p).Output()
		if err != nil || !strings.HasSuffix(string(out), " installed") {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("it is built with packages that are not here (apt-get install %s)", strings.Join(missing, " "))
	}
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := Command("/", env, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	return Command("/", env, "apt-get", append([]string{"install", "-y", "-qq"}, missing...)...)
}
