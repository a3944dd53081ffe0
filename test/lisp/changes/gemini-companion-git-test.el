;;; gemini-companion-git-test.el --- Tests of the git that Emacs starts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-git)

(ert-deftest gemini-companion-git-variables-choose-no-repository-or-program ()
  (let* ((process-environment
          '("GIT_DIR=/x" "GIT_WORK_TREE=/x" "GIT_INDEX_FILE=/x" "GIT_EXTERNAL_DIFF=/x"
            "GIT_SSH_COMMAND=/x" "GIT_ALLOW_PROTOCOL=ext" "git_dir=/x"
            "GIT_CONFIG_GLOBAL=/x" "GIT_CONFIG_COUNT=1" "GIT_CEILING_DIRECTORIES=/x"
            "HOME=/x"))
         (variables (gemini-companion-git-environment "GIT_DIR=/store")))
    (should (equal "GIT_DIR=/store" (car variables)))
    (should (equal '("git_dir=/x" "GIT_CONFIG_GLOBAL=/x" "GIT_CONFIG_COUNT=1"
                     "GIT_CEILING_DIRECTORIES=/x" "HOME=/x")
                   (last variables 5)))
    (should-not (seq-intersection (cdr variables) (seq-take process-environment 6)))))

(provide 'gemini-companion-git-test)
;;; gemini-companion-git-test.el ends here
