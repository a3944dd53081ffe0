;;; gemini-companion-privacy-test.el --- Tests of what is never shared  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-test-helper)

(defvar auth-sources)

(defun gemini-companion-privacy-test-hidden (&rest names)
  "Return those of the files NAMES that are hidden, and forget that."
  (gemini-companion-privacy-refresh)
  (prog1 (seq-filter
          (lambda (name)
            (when (file-name-directory name)
              (make-directory (file-name-directory name) t))
            (let ((enable-local-variables :safe))
              (gemini-companion-privacy-hidden-p (find-file-noselect name))))
          names)
    (gemini-companion-privacy-refresh)))

(ert-deftest gemini-companion-privacy-hides-what-holds-secrets ()
  (gemini-companion-test-with-directory '()
    (let ((secret '(".authinfo" ".netrc" "_netrc" ".env" ".env.local" ".ENV"
                    "prod.env" "id_rsa" "id_ed25519" "server.pem" "tls.key"
                    "keys.kdbx" ".ssh/config" ".npmrc" ".pgpass" "pass.asc"
                    ".pypirc" "credentials" "credentials.json"
                    "sub/secrets.yml" "kubeconfig" "prod.kubeconfig"
                    "terraform.tfstate" "terraform.tfstate.backup"
                    "prod.tfvars" ".vault-token" "aws_credentials.json"
                    "serviceAccountKey.json" "service-account-1.json"
                    "client_secret_7.json" "id_ed25519_sk.pub" "AuthKey.p8"
                    ".config/gh/hosts.yml" ".config/gcloud/x.db"
                    ".cargo/credentials.toml"
                    "pass.aB3dE5gH7jK9m/xyz-mail.txt" ".npmrc~" "server.pem~"
                    "tls.key.~2~" "tls.key.~v1+2~" "#.env#" "server.pem.gz"
                    "tls.key.bak" "tls.key.old.xz" "x.zip:id_rsa"
                    "x.tar!.netrc" "!home!.netrc~" "#!home!.ssh!x#" "link")))
      (make-symbolic-link ".env.local" (expand-file-name "link"))
      (should (gemini-companion-privacy-test-hidden "CREDENTIALS.JSON"))
      (should (equal secret
                     (apply #'gemini-companion-privacy-test-hidden
                            "environment.el" "keyboard.py" "envelope"
                            "src/id.c" "src/id_map.c" "secretary.json" "asc.txt" "main.tf" "secretary.py"
                            "credentials-form.js" "a.txt~" "#a.txt#" secret))))))

(ert-deftest gemini-companion-privacy-excludes-by-name-mode-and-function ()
  (gemini-companion-test-with-directory '(("a.el" "") ("b" "") ("plain" ""))
    (make-directory "secret/deep" t)
    (make-symbolic-link (expand-file-name "secret/deep") "link")
    (let ((files '("a.el" "b" "plain" "secret/c" "secret/deep/d" "link/d"))
          (below '("secret/c" "secret/deep/d" "link/d"))
          (secret (expand-file-name "secret/"))
          (auth-sources (list 'default "/ssh:nowhere.invalid:/x"
                              (expand-file-name "b")
                              (list :source (expand-file-name "plain"))))
          (find-file-existing-other-name nil))
      (pcase-dolist
          (`(,element . ,hidden)
           `((prog-mode . ("a.el"))
             (,(lambda (file buffer)
                 (and (bufferp buffer) (equal file (expand-file-name "b"))))
              . ("b"))
             (gemini-companion-auth-source-p . ("b" "plain"))
             (,(lambda (name _) (equal name secret)) . ,below)
             (,(concat (regexp-quote secret) "\\'") . ,below)
             ;; In doubt, a file is hidden.
             (,(lambda (&rest _) (error "No")) . ,files)
             ("\\(" . ,files)))
        (let ((gemini-companion-excluded (list element)))
          (should (equal hidden (apply #'gemini-companion-privacy-test-hidden
                                       files)))))
      ;; By default, too.
      (should (equal '("b" "plain")
                     (apply #'gemini-companion-privacy-test-hidden files))))))

(ert-deftest gemini-companion-privacy-lets-no-project-share-more ()
  (gemini-companion-test-with-directory
      '((".dir-locals.el" "((nil . ((gemini-companion-excluded . nil))))")
        (".geminiignore" "ignored\n")
        (".env" "") ("ignored" "# -*- gemini-companion-excluded: nil -*-"))
    (let ((enable-local-variables :all))
      (gemini-companion-privacy-refresh)
      (dolist (name '(".env" "ignored"))
        (with-current-buffer (find-file-noselect name)
          (should (gemini-companion-privacy-hidden-p (current-buffer))))))))

(ert-deftest gemini-companion-privacy-lets-the-user-opt-in-but-no-project ()
  (pcase-dolist (`(,marked . ,hidden)
                 '((nil . ("open/a" "open/said" "closed/b"))
                   (((gemini-companion-share . t)) . ("closed/b"))))
    (gemini-companion-test-with-directory
        '(("open/.dir-locals.el" "((nil . ((gemini-companion-share . t))))")
          ("open/said" ";; -*- gemini-companion-share: t -*-"))
      (let ((previous (default-value 'gemini-companion-share))
            (safe-local-variable-values marked))
        (setq-default gemini-companion-share nil)
        (unwind-protect
            (progn
              (should (equal hidden (gemini-companion-privacy-test-hidden
                                     "open/a" "open/said" "closed/b")))
              ;; It is not visited.
              (should (eq (null marked) (gemini-companion-privacy-name-hidden-p
                                         (expand-file-name "open/c")))))
          (setq-default gemini-companion-share previous))))))

(ert-deftest gemini-companion-privacy-keeps-answers-until-it-is-refreshed ()
  (gemini-companion-test-with-directory '(("a" ""))
    (let* ((asked 0)
           (gemini-companion-excluded
            (list (lambda (_file buffer)
                    (when buffer
                      (setq asked (1+ asked)))
                    nil))))
      (gemini-companion-privacy-refresh)
      (unwind-protect
          (pcase-dolist
              (`(,hidden ,times . ,change)
               `((nil 1)
                 (nil 1 . ,(lambda ()
                             (gemini-companion-test-write
                              ".dir-locals.el"
                              "((nil . ((gemini-companion-share . nil))))")))
                 (t 2 . ,#'gemini-companion-privacy-refresh)
                 (nil 3 . ,(lambda ()
                             (delete-file ".dir-locals.el")
                             (gemini-companion-privacy-refresh)))
                 (nil 4 . ,(lambda ()
                             (with-current-buffer "a"
                               (set-buffer-modified-p t)
                               (let ((inhibit-message t))
                                 (save-buffer)))))
                 ;; It is visited again.
                 (nil 5 . ,(lambda () (kill-buffer "a")))))
            (when change
              (funcall change))
            (should (eq hidden (gemini-companion-privacy-hidden-p
                                (find-file-noselect "a"))))
            (should (= times asked)))
        (gemini-companion-privacy-refresh)))))

(ert-deftest gemini-companion-privacy-respects-the-ignore-files-of-each-cli ()
  (dolist (name '(".geminiignore" ".qwenignore" ".agentignore" ".aiignore"))
    (gemini-companion-test-with-directory `((,name "\uFEFF*.log\r\nbuild/\n"))
      (ert-info (name)
        (should (equal '("a.log" "build/x/y")
                       (gemini-companion-privacy-test-hidden
                        "a" "a.log" "build/x/y" "x/build")))
        ;; Only a line of the same file restores a file.
        (gemini-companion-test-write
         (if (equal name ".aiignore") ".qwenignore" ".aiignore") "!a.log\n")
        (should (gemini-companion-privacy-test-hidden "a.log"))
        ;; Only a regular file is read.
        (delete-file name)
        (make-symbolic-link "/dev/zero" (expand-file-name name))
        (should-not (gemini-companion-privacy-test-hidden "a.log"))))))

(ert-deftest gemini-companion-privacy-notices-rules-that-others-have-written ()
  (pcase-dolist (`(,file . ,text) '((".geminiignore" . "src\n")
                                    ("src/.qwenignore" . "a.c\n")
                                    ("rules" . "a.c\n")
                                    (".dir-locals.el" . "((nil (gemini-companion-share)))")
                                    (".dir-locals.el" . "((c-mode (gemini-companion-share)))")))
    (gemini-companion-test-with-directory '(("src/a.c" ""))
      (make-symbolic-link "rules" ".aiignore")
      (gemini-companion-privacy-refresh)
      (let* ((name (expand-file-name "src/a.c"))
             (hidden (lambda ()
                       (gemini-companion-privacy-refresh 'if-changed)
                       (gemini-companion-privacy-name-hidden-p name))))
        (should-not (funcall hidden))
        (write-region text nil file nil 'silent)
        (should (funcall hidden))
        (delete-file file)
        (should-not (funcall hidden))))))

(ert-deftest gemini-companion-privacy-ignores-case-where-the-volume-does ()
  (gemini-companion-test-with-directory '((".geminiignore" "secret\n*.LOG\n"))
    (dolist (ignores-case '(nil t))
      (cl-letf (((symbol-function 'file-name-case-insensitive-p)
                 (lambda (_) ignores-case)))
        (should (equal (and ignores-case '("Secret" "a.log"))
                       (gemini-companion-privacy-test-hidden
                        "Secret" "a.log" "b")))))))

(ert-deftest gemini-companion-privacy-is-not-held-up-by-hostile-patterns ()
  (let ((begin (float-time (get-internal-run-time))))
    (pcase-dolist (`(,piece ,end)
                   '(("*a" "b") ("*?b" "*") ("*[!b]" "b*") ("**/a/" "b")
                     ("**/*a*a/" "**/b/**")))
      (gemini-companion-test-with-directory
          `((".geminiignore" ,(concat (string-join (make-list 18 piece)) end)))
        (gemini-companion-privacy-test-ignored
         (list (make-string 255 ?a)
               (string-join (make-list 16 (make-string 249 ?a)) "/")))))
    ;; A matcher that backtracks takes for ever.
    (should (< (- (float-time (get-internal-run-time)) begin) 100))))

;;;; Several names

(ert-deftest gemini-companion-privacy-hides-a-file-by-any-name-of-it ()
  (gemini-companion-test-with-directory
      '(("plain" "") ("d/x" "") ("d/.geminiignore" "e/link\n") ("d/e/y" "")
        ("p/.dir-locals.el" "((nil . ((gemini-companion-share . nil))))")
        ("p/q/.dir-locals.el" "((nil . ((fill-column . 60))))"))
    (pcase-dolist (`(,link . ,file) '((".env" . "plain") ("shown" . ".env")
                                      ("d/e/link" . "../x") ("short" . "d/e")
                                      ("./~root" . "shown"))) ; a user
      (make-symbolic-link file link))
    (let* ((quoted (concat "/:" directory "d/x"))
           (find-file-existing-other-name nil)
           (gemini-companion-excluded
            (cons (concat "\\`" (regexp-quote directory) "d/x")
                  gemini-companion-excluded)))
      (should (equal `("shown" "./~root" "short/link" ,quoted "p/q/a")
                     (gemini-companion-privacy-test-hidden
                      "plain" "d/e/y" "shown" "./~root" "short/link" quoted
                      "p/q/a"))))))

(ert-deftest gemini-companion-privacy-hides-a-file-that-is-visited-by-another-name ()
  (gemini-companion-test-with-directory
      '((".env" "") ("d/x" "") (".aiignore" "secret")
        ;; A parenthesis is missing.
        ("m/.dir-locals.el" "((nil . ((gemini-companion-share . nil)))")
        ;; Emacs takes x for the beginning of a name.
        ("k/.dir-locals.el" "((\"x\" . ((nil . ((gemini-companion-share))))))"))
    (add-name-to-file ".env" "hard")
    (dolist (size '(0 20000))
      (pcase-dolist (`(,start ,end) '(("/* -*- gemini-companion-share: nil -*-" "*/")
                                      ("" "# Local Variables:
# gemini-companion-share : ()
# End:")))
        (gemini-companion-test-write
         "says" (concat start (make-string size ?\n) end))
        (should (gemini-companion-privacy-name-hidden-p
                 (expand-file-name "says")))
        ;; Emacs does not read its local variables.
        (with-current-buffer (find-file-noselect "says" nil t)
          (should (gemini-companion-privacy-hidden-p (current-buffer)))
          (kill-buffer))))
    (make-symbolic-link "d" "secret")
    (should-not (gemini-companion-privacy-test-hidden "hard" "d/x" "k/y"))
    (dolist (name '(".env" "secret/x" "m/n/a" "k/xy" "k/xy/z"))
      (should (gemini-companion-privacy-name-hidden-p
               (expand-file-name name))))))

;;;; Git as the judge

(defun gemini-companion-privacy-test-pattern (_)
  "Return a random pattern of a .gitignore.
Not one with // or a**, which git takes now for this, now for that, and
none with a slash or an escape in brackets, which nobody writes."
  (gemini-companion-privacy-test-plain
   (concat
    (seq-random-elt '("" "" "" "!" "/" "#" "\\!" "**/"))
    (mapconcat
     (lambda (_)
       (seq-random-elt
        '("a" "b" "ab" "d" "*" "?" "**" "***" "/" "/" "/**/" "[ab]" "[!a]"
          "[]a]" "[a-c]" "[^b-]" "[[:alpha:]]" "[[:nope:]]" "["
          "\\*" "\\ " "\\\\" " " "." "a*" "*b" "!" "e/")))
     (number-sequence 0 (random 4)) "")
    (seq-random-elt '("" "" "/" "/**" " " "\\" "\r")))))

(defun gemini-companion-privacy-test-plain (pattern)
  "Return PATTERN with fewer slashes and stars in a row, and none in brackets."
  (pcase-dolist (`(,from ,to) '(("//+" "/") ("\\([^/]\\)\\*\\*+" "\\1*")
                                ("\\[[^]]*[/\\][^]]*" "")))
    (setq pattern (replace-regexp-in-string from to pattern t)))
  pattern)

(defun gemini-companion-privacy-test-name ()
  "Return a random relative file name."
  (concat (seq-random-elt '("" "" "d/" "d/e/"))
          (mapconcat (lambda (_)
                       (seq-random-elt
                        '("a" "b" "ab" "ba" "a.b" "!a" "#a" "*" "a b" "aab" "]"
                          "-" "c" "\\")))
                     (number-sequence 0 (random 3)) "/")))

(defun gemini-companion-privacy-test-ignored (names)
  "Return those of NAMES that are hidden; none of them is visited."
  (gemini-companion-privacy-refresh)
  (seq-filter (lambda (name)
                (with-temp-buffer
                  (setq buffer-file-name (expand-file-name name))
                  (prog1 (gemini-companion-privacy-hidden-p (current-buffer))
                    (setq buffer-file-name nil))))
              names))

(ert-deftest gemini-companion-privacy-ignores-what-git-would ()
  (unless (executable-find "git")
    (ert-skip "No git"))
  (let ((seed (or (getenv "GC_SEED") (format "%d" (random 1000000))))
        (gemini-companion-excluded nil))
    (random seed)
    (gemini-companion-test-with-directory '()
      (call-process "git" nil nil nil "init" "-q")
      (make-directory "d/e" t)
      (dotimes (_ 30)
        (let ((texts (mapcar (lambda (place)
                               (let ((text
                                      (mapconcat
                                       #'gemini-companion-privacy-test-pattern
                                       (number-sequence 0 (random 4)) "\n")))
                                 (dolist (name '(".gitignore" ".geminiignore"))
                                   (gemini-companion-test-write
                                    (concat place name) text))
                                 text))
                             '("" "d/" "d/e/")))
              (names (cl-loop repeat 40
                              collect (gemini-companion-privacy-test-name))))
          (ert-info ((format "GC_SEED=%s %S" seed texts))
            (should (equal (with-temp-buffer
                             (insert (string-join names "\0"))
                             (call-process-region
                              nil nil "git" t t nil
                              "check-ignore" "--no-index" "--stdin" "-z")
                             (split-string (buffer-string) "\0" t))
                           (gemini-companion-privacy-test-ignored names)))))))))

(defmacro gemini-companion-roots-test-with (directories &rest body)
  "Run BODY in a new directory with DIRECTORIES, a list of relative names.
Roots are cached, but not from before."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '()
     (dolist (name ,directories)
       (make-directory (expand-file-name name directory) t))
     (gemini-companion-privacy-refresh)
     (unwind-protect (progn ,@body)
       (gemini-companion-privacy-refresh)
       (setq gemini-companion-roots-last nil))))

(ert-deftest gemini-companion-roots-exclude-home-and-remote-directories ()
  (gemini-companion-roots-test-with '(".git" "notes")
    (let ((link (make-temp-name (directory-file-name directory))))
      (make-symbolic-link directory link)
      (unwind-protect
          (dolist (home (list directory (concat directory "/") link
                              (concat link "/../" (file-name-nondirectory link))))
            (gemini-companion-privacy-refresh)
            (let ((process-environment (cons (concat "HOME=" home)
                                             process-environment)))
              (pcase-dolist (`(,below . ,start)
                             `((() . ,directory)
                               (() . ,(file-name-as-directory link))
                               (("notes") . "~/notes/")
                               (("notes") . ,(expand-file-name "notes/" link))
                               (("notes") . ,(expand-file-name "notes/"))))
                (should (equal below
                               (mapcar (lambda (root)
                                         (file-relative-name root directory))
                                       (seq-filter
                                        (lambda (root)
                                          (file-in-directory-p root directory))
                                        (gemini-companion-roots start))))))))
        (delete-file link)))
    (gemini-companion-test-with-far-host
      (with-temp-buffer
        (setq buffer-file-name "/far:/srv/a")
        (should-not (seq-find (lambda (root) (string-match-p "srv\\|far" root))
                              (gemini-companion-roots nil)))
        (setq buffer-file-name nil))
      (should-not (seq-mapcat #'gemini-companion-roots '("/" "/far:/srv/"))))))

(ert-deftest gemini-companion-roots-name-files-as-the-cli-sees-the-project ()
  (gemini-companion-roots-test-with '("p/.git" "p/src" "elsewhere" "lone")
    (make-symbolic-link (expand-file-name "p") (expand-file-name "link"))
    (make-symbolic-link (expand-file-name "elsewhere/x")
                        (expand-file-name "p/src/inner"))
    (make-symbolic-link (expand-file-name "p/src/a") (expand-file-name "far"))
    (dolist (name '("elsewhere/x" "p/src/a"))
      (write-region "" nil name nil 'silent))
    (let ((gemini-companion-excluded
           (list (lambda (name buffer)
                   (and (null buffer)
                        (equal name (expand-file-name "elsewhere/"))))))
          (process-environment (cons (concat "HOME=" directory)
                                     process-environment))
          (find-file-visit-truename nil)
          (vc-follow-symlinks nil))
      (pcase-dolist (`(,visited . ,name)
                     '(("link/src/a" . "p/src/a")
                       ("link/src/inner" . "p/src/inner")
                       ("far" . "p/src/a")
                       ("lone/b" . "lone/b")
                       ("elsewhere/x" . nil)))
        (let ((buffer (find-file-noselect visited)))
          (gemini-companion-roots (expand-file-name "p/"))
          (should (equal (and name (expand-file-name name))
                         (gemini-companion-roots-name
                          (buffer-file-name buffer))))
          (kill-buffer buffer))))))

;;; gemini-companion-privacy-test.el ends here
