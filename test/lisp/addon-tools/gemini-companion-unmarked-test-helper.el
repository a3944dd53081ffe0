;;; gemini-companion-unmarked-test-helper.el --- A store without a server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-unmarked)
(require 'json)

(defconst gemini-companion-unmarked-test--program "\
import json, sys
from gemini_companion_epc.restore import File, Plan, restore
from gemini_companion_epc.snapshots import SnapshotError, Store
store = object.__new__(Store)
store.root, store.directory, plan, files = json.load(sys.stdin)
store._environ = {'PATH': '/usr/bin:/bin', 'GIT_DIR': store.directory}
store._alternates, store._last, store.private = {}, None, {}
try:
    problems = restore(store, [File(*file) for file in files], Plan(**plan))
    print(json.dumps([[i, why] for i, why in enumerate(problems) if why]))
except SnapshotError as error:
    print(json.dumps(str(error)))
"
  "Program that restores files from a store, as the server does.")

(defun gemini-companion-unmarked-test-answer (store facts files)
  "Return the answer of the server, which has STORE, to FACTS and FILES."
  (pcase-let (((map :root :modes :backups :checks :gone :tree) facts))
    (with-temp-buffer
      (insert (json-encode
               (vector root store
                       `((modes . ,modes) (backups . ,backups)
                         (checks . ,(if checks t :json-false))
                         (gone . ,(vconcat gone)) (tree . ,tree))
                       (json-read-from-string files))))
      (let ((coding-system-for-write 'utf-8-unix)
            (coding-system-for-read 'utf-8-unix)
            (process-environment
             (cons (concat "PYTHONPATH="
                           (expand-file-name "python" gemini-companion-test-root))
                   process-environment)))
        (if (eql 0 (call-process-region
                    nil nil (gemini-companion-test-python) t t nil "-c"
                    gemini-companion-unmarked-test--program))
            (let ((json-array-type 'list))
              (json-read-from-string (buffer-string)))
          ;; An error in a timer would fail no test.
          (buffer-string))))))

(defmacro gemini-companion-unmarked-test-with-server (store &rest body)
  "Evaluate BODY while a server answers that has STORE, a directory.
It answers later, as a server does."
  (declare (indent 1) (debug t))
  `(let ((store (expand-file-name ,store)))
     (cl-letf (((symbol-function 'gemini-companion-server-info)
                (lambda () '(:pid 1)))
               ((symbol-function 'gemini-companion-server-ask)
                (lambda (method args done &optional failed)
                  (should (eq 'restore method))
                  (run-at-time
                   0 nil
                   (lambda ()
                     (let ((answer (apply #'gemini-companion-unmarked-test-answer
                                          store args)))
                       (funcall (if (stringp answer) failed done) answer))))
                  t)))
       ,@body)))

(defun gemini-companion-unmarked-test-change (unmarked undone &optional files)
  "Change FILES of UNMARKED, by default all, so that they are UNDONE, or restored.
Return a list of the number of changed files, and of problems."
  (let ((answer nil)
        (said nil)
        (gemini-companion-unmarked-most-problems 100))
    (cl-letf (((symbol-function 'gemini-companion-idle-announce)
               (lambda (text) (setq said text))))
      (gemini-companion-step-do
       (gemini-companion-step-make
        :kind 'several :on undone :edit unmarked
        :hunks (or files
                   (if undone
                       (gemini-companion-undo-several-left unmarked)
                     (gemini-companion-unmarked-taken-back unmarked))))
       (lambda (_problem back)
         (setq answer (list (if back (length (gemini-companion-step-hunks back)) 0)))))
      (gemini-companion-test-eventually (and answer said)))
    (append answer
            (list (when (string-match "\\`[^:;]*[:;] " said)
                    (split-string (substring said (match-end 0)) "; "))))))

(provide 'gemini-companion-unmarked-test-helper)
;;; gemini-companion-unmarked-test-helper.el ends here
