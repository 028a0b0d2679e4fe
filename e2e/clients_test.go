package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// facts are what clients in other languages test against: FACTS names the file.
type facts struct {
	URL    string `json:"url"`
	Model  string `json:"model"`
	Key    string `json:"key,omitempty"`
	System string `json:"system"` // systemMessage
	Want   *want  `json:"want,omitempty"`
	Heard  *heard `json:"heard,omitempty"`
}

// client runs a program in a directory of another language's tests.
func (s *server) other(t *testing.T, f facts, dir, name string, args ...string) {
	t.Helper()
	f.URL, f.Model, f.System = s.url, s.model, systemMessage
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "facts.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(within(t), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "FACTS="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v (`make e2e` installs the clients)\n%s", cmd.Args, err, out)
	}
}

func (s *server) node(t *testing.T, f facts, file string) {
	t.Helper()
	s.other(t, f, "node", "node", "--test", "--test-reporter=tap", file)
}

// python runs a file with the interpreter of the environment that has the
// clients.
func (s *server) python(t *testing.T, f facts, file string) {
	t.Helper()
	s.other(t, f, "python", filepath.Join(".venv", "bin", "python"), file)
}

func testNode(t *testing.T, s *server, w *want)   { s.node(t, facts{Want: w}, "smol.test.js") }
func testPython(t *testing.T, s *server, w *want) { s.python(t, facts{Want: w}, "smol.py") }
func testLMEval(t *testing.T, s *server, w *want) { s.python(t, facts{Want: w}, "lm_eval_client.py") }

func testNodeScript(t *testing.T, s *server)   { s.node(t, facts{Heard: &hears}, "script.test.js") }
func testPythonScript(t *testing.T, s *server) { s.python(t, facts{Heard: &hears}, "script.py") }
