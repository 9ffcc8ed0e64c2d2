package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// GoSuite compiles the tests of a Go module's root package as the module ships them, in a copy of its own below the
// cache, and returns the command that runs them. patch may change the copy.
func GoSuite(module, version string, tags string, patch func(dir string) error, args ...string) (*exec.Cmd, error) {
	name := "gosuite/" + filepath.Base(module) + "-" + version
	dir, err := Install(name, module+" "+version+" "+tags, func(dir string) error {
		cmd := exec.Command("go", "mod", "download", "-json", module+"@"+version)
		cmd.Dir = os.TempDir()
		out, err := cmd.Output()
		var zip struct{ Dir, Error string }
		if jsonErr := json.Unmarshal(out, &zip); jsonErr != nil || zip.Dir == "" {
			return fmt.Errorf("download %s@%s: %w: %s", module, version, err, bytes.TrimSpace(append(out, zip.Error...)))
		}
		if err := Command(dir, nil, "cp", "-r", zip.Dir+"/.", "."); err != nil {
			return err
		}
		if err := Command(dir, nil, "chmod", "-R", "u+w", "."); err != nil {
			return err
		}
		if patch != nil {
			if err := patch(dir); err != nil {
				return err
			}
		}
		return Command(dir, []string{"GOFLAGS=-mod=mod"}, "go", "test", "-c", "-tags", tags, "-o", "suite.test", ".")
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", append([]string{"tool", "test2json", "-t", "./suite.test", "-test.v=test2json"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"GOFLAGS=-mod=mod"}
	return cmd, nil
}
