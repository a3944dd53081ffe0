;;; gemini-companion-privacy-test.el --- Tests of what is never shared  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-privacy-test-helper)
(require 'gemini-companion-test-helper)

(defvar auth-sources)

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

(ert-deftest gemini-companion-privacy-knows-copies-by-their-suffixes ()
  (pcase-dolist (`(,name . ,plain)
                 '(("/a/x" . "/a/x") ("/a/.env.gz" . "/a/.env") ("/a/x.Z.bak" . "/a/x")
                   ("/a/x.orig.~1~" . "/a/x") ("/a/x.~a.~b.GZ" . "/a/x")
                   ("/a/x.~main.txt" . "/a/x") ("/a/x.~" . "/a/x.~") ("/a/gz" . "/a/gz")
                   ("/a/.gz" . "/a/") ("/a.gz/x" . "/a.gz/x") ("/a.~b/x" . "/a.~b/x")))
    (dolist (hidden (list plain "/a/x" "/a/x/x"))
      (let ((gemini-companion-excluded (list (format "\\`%s\\'" (regexp-quote hidden)))))
        (gemini-companion-privacy-refresh)
        (ert-info ((format "%s %s" name hidden))
          (should (eq (equal plain hidden)
                      (and (gemini-companion-privacy-name-hidden-p name) t)))))))
  (dolist (piece '(".~a" ".gz" "~." "#"))
    ;; No file has a longer name.
    (let ((name (concat "/a/x" (string-join (make-list 1300 piece)) "/!")))
      (should (< (gemini-companion-test-seconds
                   (gemini-companion-privacy-name-hidden-p (substring name 0 -2))
                   (gemini-companion-privacy-name-hidden-p name))
                 10))))
  (gemini-companion-privacy-refresh))

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

;; A command that had written 300 files had Emacs read them for each.
(ert-deftest gemini-companion-privacy-reads-no-directory-variables-without-a-rule ()
  (gemini-companion-test-with-directory nil
    (let ((read 0))
      (cl-letf* ((original (symbol-function 'hack-dir-local-variables))
                 ((symbol-function 'hack-dir-local-variables)
                  (lambda ()
                    (setq read (1+ read))
                    (funcall original))))
        (pcase-dolist (`(,text ,hidden) '(("((nil (fill-column . 60)))" nil)
                                          ("((nil (gemini-companion-share)))" t)))
          (write-region text nil ".dir-locals.el" nil 'silent)
          (gemini-companion-privacy-refresh)
          (setq read 0)
          (dotimes (n 5)
            (should (eq hidden (and (gemini-companion-privacy-name-hidden-p
                                     (expand-file-name (format "%d.c" n)))
                                    t))))
          (should (eq hidden (< 0 read))))))))

;;; gemini-companion-privacy-test.el ends here
