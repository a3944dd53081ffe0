;;; gemini-companion-manual-test.el --- The manual is complete  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

;; Its widgets are the types of options.
(require 'cus-edit)
(require 'gemini-companion)
(require 'gemini-companion-commands)
(require 'gemini-companion-test-helper)
(require 'wid-edit)

(defvar gemini-companion-compose-mode-map)
(defvar gemini-companion-eglot-sendable)
(defvar gemini-companion-errors-timeout)
(defvar gemini-companion-inquiry-mode-map)
(defvar gemini-companion-notify-turn-seconds)
(defvar gemini-companion-permission-mode-map)
(defvar gemini-companion-plan-mode-map)
(defvar gemini-companion-terminal-ended-map)
(defvar gemini-companion-terminal-map)
(defvar gemini-companion-unified-draw-most-lines)
(defvar gemini-companion-windows-ediff-lines)

(defconst gemini-companion-manual-test-features
  (mapcar #'file-name-base (gemini-companion-test-sources))
  "The names of the features of the package.")

;; The mode loads most of them later.
(mapc (lambda (name) (require (intern name)))
      gemini-companion-manual-test-features)

(defmacro gemini-companion-manual-test-in (file &rest body)
  "Evaluate BODY in a buffer with FILE of the repository."
  (declare (indent 1) (debug t))
  `(with-temp-buffer
     (insert-file-contents (expand-file-name ,file gemini-companion-test-root))
     ,@body))

(defun gemini-companion-manual-test-options (&optional group)
  "Return all options of GROUP, by default ours, and of its subgroups."
  (seq-mapcat (pcase-lambda (`(,name ,type))
                (pcase type
                  ('custom-variable (list name))
                  ('custom-group (gemini-companion-manual-test-options name))))
              (get (or group 'gemini-companion) 'custom-group)))

(ert-deftest gemini-companion-manual-has-each-option-and-command-and-words ()
  (gemini-companion-manual-test-in "doc/gemini-companion.org"
    (pcase-dolist
        (`(,regexp . ,words)
         `(("^- \\(?:\\(?:Command\\|User Option\\): %1$s\\|Key: .* (%1$s)\\) ::"
            ,@(gemini-companion-manual-test-options)
            ,@(mapcar #'cadr (gemini-companion-commands-in 'global)))
           ("^#\\+cindex: %s\\_>"
            "Ediff" "Evil" "uninstalling" "macOS" "daemon" "image" "draft"
            "history" "proxy" "uv" "Nix" "MELPA" "straight" "Flymake" "Magit"
            "Dired" "kill ring" "TRAMP" "vterm" "tmux" "undoing" "merging")))
      (dolist (word words)
        (goto-char (point-min))
        (should (re-search-forward (format regexp word) nil t))))))

(ert-deftest gemini-companion-modes-have-docstrings ()
  "Emacs makes one for a mode whose docstring it does not find."
  (let ((modes 0))
    (mapatoms
     (lambda (symbol)
       (when (and (string-prefix-p "gemini-companion-" (symbol-name symbol))
                  (get symbol 'derived-mode-parent))
         (cl-incf modes)
         (should-not (string-prefix-p "Major mode derived from"
                                      (documentation symbol))))))
    (should (< 5 modes))))

(ert-deftest gemini-companion-commands-are-for-users-or-private ()
  (let ((documented (gemini-companion-manual-test-api))
        (others nil))
    (mapatoms
     (lambda (symbol)
       (let ((name (symbol-name symbol)))
         (when (and (commandp symbol)
                    (string-prefix-p "gemini-companion-" name)
                    (not (string-match-p "--\\|-test-" name))
                    (not (member name documented)))
           (push name others)))))
    (should-not others)
    ;; Only one of the modes is for M-x.
    (should-not (seq-filter (lambda (name)
                              (and (string-suffix-p "-mode" name)
                                   (commandp (intern name))))
                            (remove "gemini-companion-mode" documented)))))

;;;; Names

(defconst gemini-companion-manual-test-documents
  '("README.org" "NEWS.org" "CONTRIBUTING.org" "doc/gemini-companion.org")
  "What is checked for names, keys, links and files.")

(defun gemini-companion-manual-test-matches (regexp)
  "Return the matches of the first group of REGEXP in the rest of the buffer."
  (let ((matches nil)
        (case-fold-search nil))
    (while (re-search-forward regexp nil t)
      (push (match-string-no-properties 1) matches))
    (nreverse matches)))

(defun gemini-companion-manual-test-tests ()
  "Return the names that follow `ert-deftest' in any file."
  (seq-mapcat (lambda (file)
                (gemini-companion-manual-test-in file
                  (gemini-companion-manual-test-matches
                   "^(ert-deftest \\(\\S-+\\)")))
              (directory-files-recursively
               (expand-file-name "test/lisp" gemini-companion-test-root)
               "-test\\.el\\'")))

(defun gemini-companion-manual-test-is-variable (symbol)
  "Return non-nil if SYMBOL is a variable and no option."
  (and (boundp symbol) (not (custom-variable-p symbol))))

(defun gemini-companion-manual-test-is-any (symbol)
  "Return non-nil if SYMBOL is anything of the package."
  (or (fboundp symbol) (boundp symbol) (facep symbol)
      (featurep symbol)))

(ert-deftest gemini-companion-known-issues-name-their-tests ()
  (let ((tests (gemini-companion-manual-test-tests))
        (files 0))
    (dolist (file (file-expand-wildcards
                   (expand-file-name "lisp/*/*.el" gemini-companion-test-root)))
      (with-temp-buffer
        (insert-file-contents file)
        (when (re-search-forward "^;; Known issues:$" nil t)
          (cl-incf files)
          (dolist (issue (cdr (split-string
                               (buffer-substring
                                (point) (progn (search-forward "\n\n") (point)))
                               "^;; - ")))
            (ert-info ((concat file ": " issue))
              (if (string-match "^;;   Test: `\\(\\S-+\\)'\n" issue)
                  (should (member (match-string 1 issue) tests))
                (should (string-match-p "No\\(?:\n;;  \\)? test\n" issue))))))))
    (should (<= 3 files))))

(ert-deftest gemini-companion-lists-of-tests-name-tests ()
  (let ((tests (gemini-companion-manual-test-tests)))
    (dolist (list '("test/quick" "test/differs"))
      (dolist (name (gemini-companion-manual-test-in list
                      (gemini-companion-manual-test-matches "^\\(\\S-+\\)")))
        (ert-info ((concat list ": " name))
          (should (or (member name tests)
                      (directory-files-recursively
                       (expand-file-name "test/lisp" gemini-companion-test-root)
                       (format "\\`%s\\.el\\'" name)))))))))

(ert-deftest gemini-companion-names-in-documents-are-what-they-are-called ()
  (let ((others (gemini-companion-manual-test-tests))
        (wrong nil))
    (dolist (file gemini-companion-manual-test-documents)
      (pcase-dolist
          (`(,is . ,regexp)
           '((commandp . "^ *- Command: \\(\\S-+\\) ::")
             (commandp . "^ *- Key: .+ (\\(\\S-+\\)) ::")
             (commandp . "M-x[ \n]+\\(gemini-companion\\(?:-[a-z]+\\)+\\)")
             (custom-variable-p . "^ *- User Option: \\(\\S-+\\) ::")
             (custom-variable-p . "(setq \\(gemini-companion-[a-z-]+\\)$")
             (fboundp . "^ *- Function: \\(gemini-\\S-+\\) .*::")
             (gemini-companion-manual-test-is-variable
              . "^ *- Variable: \\(\\S-+\\) ::")
             (facep . "^- \\(gemini-companion-[a-z-]+\\) ::")
             (facep . "\\_<faces?[ \n]+~\\(gemini-companion-[a-z-]+\\)~")
             (gemini-companion-manual-test-is-any
              . "[~= ('\n]\\(gemini-companion\\(?:-[a-z]+\\)+\\)[~= ),:\n]")))
        (gemini-companion-manual-test-in file
          (dolist (name (gemini-companion-manual-test-matches regexp))
            (unless (or (funcall is (intern name))
                        (member name others))
              (push (list file is name) wrong))))))
    (should-not wrong)))

(ert-deftest gemini-companion-manual-has-each-face-and-readme-each-command-once ()
  (let ((faces (gemini-companion-manual-test-in "doc/gemini-companion.org"
                 (gemini-companion-manual-test-matches
                  "\\(?:^- \\|\\_<face[ \n]+~\\)\\(gemini-companion-[a-z-]+\\)")))
        (missing nil))
    (mapatoms (lambda (symbol)
                (when (and (facep symbol)
                           (string-match-p "\\`gemini-companion-[a-z]"
                                           (symbol-name symbol))
                           (not (string-search "--" (symbol-name symbol)))
                           (not (member (symbol-name symbol) faces)))
                  (push symbol missing))))
    (should-not missing)))

;; What is in the place of a name is checked as every other name.
;;;; Keys

(defun gemini-companion-manual-test-keys (section)
  "Return the keys in SECTION of the manual, conses (KEY . COMMAND).
SECTION is the CUSTOM_ID of its heading."
  (with-temp-buffer
    (insert (alist-get section (gemini-companion-manual-test-sections)
                       nil nil #'equal))
    (goto-char (point-min))
    (let ((keys nil))
      (while (re-search-forward "^- Key: \\(.+\\) (\\([a-z-]+\\)) ::" nil t)
        (push (cons (match-string 1) (intern (match-string 2))) keys))
      keys)))

(defun gemini-companion-manual-test-map (&rest places)
  "Return a keymap with the keys of PLACES in the table of commands."
  (let ((map (make-sparse-keymap)))
    (dolist (place places map)
      (gemini-companion-commands-bind map place))))

(defun gemini-companion-manual-test-prefix-map ()
  "Return a keymap with the prefix key of the documents."
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c g") 'gemini-companion-command-map)
    map))

(defun gemini-companion-manual-test-local-map (mode)
  "Return the keymap of a buffer in MODE, with those that MODE inherits."
  ;; `with-temp-buffer' would kill the buffer without its hooks.
  (let ((buffer (generate-new-buffer "map")))
    (unwind-protect
        (with-current-buffer buffer
          (funcall mode)
          (current-local-map))
      (kill-buffer buffer))))

(defun gemini-companion-manual-test-maps ()
  "Return an alist of the sections of the manual about keys, and their keymaps."
  (let ((review (gemini-companion-manual-test-map 'review 'view 'panel))
        (overview (gemini-companion-manual-test-local-map
                   'gemini-companion-overview-mode)))
    `(("getting-started" ,review)
      ("terminals" ,gemini-companion-terminal-map
       ,gemini-companion-terminal-ended-map)
      ("arrival" ,review ,overview)
      ("views" ,review)
      ("review-keys" ,review)
      ("next-review" ,review)
      ("changes" ,(gemini-companion-manual-test-map 'change))
      ("overview-buffer" ,overview)
      ("overview-keys" ,overview)
      ("renames" ,overview)
      ("shell" ,overview)
      ("comments" ,overview ,review)
      ("undoing" ,overview)
      ("check" ,overview)
      ("compose" ,gemini-companion-compose-mode-map)
      ("prompt-states" ,gemini-companion-compose-mode-map)
      ("permissions" ,gemini-companion-permission-mode-map)
      ("plans" ,gemini-companion-plan-mode-map)
      ("inquiries" ,gemini-companion-inquiry-mode-map)
      ("troubleshooting" ,(gemini-companion-manual-test-local-map
                           'gemini-companion-status-mode))
      ("trouble-logs" ,(gemini-companion-manual-test-local-map
                'gemini-companion-events-mode)))))

(defconst gemini-companion-manual-test-other-keys
  '("M-x" "C-u" "C-g" "C-c" "C-z" "C-/" "C-h" "C-s" "C-x" "C-j" "C-c C-c" "C-c C-a"
    "C-h m"
    "C-x C-s" "C-x C-f" "C-x o" "C-x k" "C-x #" "C-u C-SPC" "C-x RET c"
    "C-x RET r" "C-x RET f" "M-g n" "M-g p" "TAB" "SPC" "DEL" "Esc" "S-TAB" "mouse-1" "mouse-2")
  "Keys of Emacs, of Ediff and of the CLIs in the text of the manual.")

(defconst gemini-companion-manual-test-signs
  '(("views" "-" "+" "x" "*" "?")
    ("next-review" ":")
    ;; Those of Ediff, and an answer to a question.
    ("review-keys" "n" "p" "|" "v" "j" "k" "R")
    ("check" "y")
    ("compose" "@" "/")
    ("prompt-characters" "@" "/" "!")
    ;; A key of Emacs.
    ("exclusions" "!"))
  "Characters in sections of the manual that look like keys.")

(defun gemini-companion-manual-test-sections ()
  "Return the sections of the manual, conses (ID . TEXT).
ID is the CUSTOM_ID of the heading, or without one its title."
  (gemini-companion-manual-test-in "doc/gemini-companion.org"
    (let ((sections nil))
      (while (re-search-forward "^\\*+ \\(.+\\)\n" nil t)
        (let ((title (match-string 1))
              (start (point))
              (end (if (save-excursion (re-search-forward "^\\*+ " nil t))
                       (match-beginning 0)
                     (point-max))))
          (push (cons (save-excursion
                        (goto-char start)
                        (if (re-search-forward "^:CUSTOM_ID: +\\(\\S-+\\)" end t)
                            (match-string 1)
                          title))
                      (buffer-substring start end))
                sections)))
      (nreverse sections))))

(ert-deftest gemini-companion-manual-has-the-keys-that-are-bound ()
  (let ((maps (gemini-companion-manual-test-maps))
        (prefix (gemini-companion-manual-test-prefix-map))
        (wrong nil))
    (should-not (seq-difference (mapcar #'car maps)
                                (mapcar #'car (gemini-companion-manual-test-sections))))
    (pcase-dolist (`(,title . ,text) (gemini-companion-manual-test-sections))
      (let ((here (cons prefix (alist-get title maps nil nil #'equal)))
            (start 0))
        ;; A key with its command.
        (while (string-match
                "\\(?:^ *- Key: \\|~\\)\\([^~\n]+?\\)~?[ \n]+(~?\\(gemini-[a-z-]+\\|[a-z-]+-[a-z-]+\\)~?)"
                text start)
          (let ((key (match-string 1 text))
                (command (intern (match-string 2 text))))
            (setq start (match-end 0))
            (unless (seq-some (lambda (map) (eq command (lookup-key map (kbd key))))
                              here)
              (push (list title key command) wrong))))
        ;; A key in the text.
        (setq start 0)
        (while (string-match
                (format "~\\(%1$s\\(?: %1$s\\)*\\)~"
                        (concat "\\(?:[CMS]-\\)*\\(?:[!-}]\\|RET\\|TAB\\|SPC\\|DEL\\|ESC"
                                "\\|Esc\\|mouse-[0-9]\\)"))
                text start)
          (let ((key (match-string 1 text)))
            (setq start (match-end 0))
            (unless (or (seq-some (lambda (map)
                                    (let ((binding (lookup-key map (kbd key))))
                                      (and binding (not (numberp binding)))))
                                  here)
                        (member key gemini-companion-manual-test-other-keys)
                        (member key (alist-get title
                                               gemini-companion-manual-test-signs
                                               nil nil #'equal)))
              (push (list title key) wrong))))))
    (should-not wrong)))

(ert-deftest gemini-companion-keys-behind-the-prefix-are-bound-in-all-documents ()
  (let ((map (gemini-companion-manual-test-prefix-map))
        (wrong nil))
    (dolist (file (cons "dev/pictures.py" gemini-companion-manual-test-documents))
      (gemini-companion-manual-test-in file
        (dolist (key (gemini-companion-manual-test-matches
                      "\\(C-c g \\S-\\)[~=: ]"))
          (unless (commandp (lookup-key map (kbd key)))
            (push (list file key) wrong)))))
    ;; Captions of the film begin with keys.
    (gemini-companion-manual-test-in "dev/pictures.py"
      (let ((places (gemini-companion-manual-test-map 'view 'change 'overview)))
        (dolist (key (gemini-companion-manual-test-matches
                      "film\\.take([0-9.]+, \"\\([a-zA-Z]\\|RET\\):"))
          (unless (commandp (lookup-key places (kbd key)))
            (push (list "film" key) wrong)))))
    (should-not wrong)))

(defun gemini-companion-manual-test-rows (&rest places)
  "Return the rows of the table of commands in PLACES, conses (KEY . COMMAND)."
  (seq-uniq (mapcar (lambda (row) (cons (car row) (cadr row)))
                    (seq-mapcat #'gemini-companion-commands-in places))))

(ert-deftest gemini-companion-manual-has-the-keys-of-the-table-of-commands ()
  (pcase-dolist (`(,section . ,rows)
                 (list (cons "review-keys"
                             (gemini-companion-manual-test-rows
                              'review 'view 'panel))
                       (cons "changes"
                             (gemini-companion-manual-test-rows 'change))
                       (cons "overview-keys"
                             (gemini-companion-manual-test-rows 'overview))
                       (cons "prefix-key"
                             (mapcar (lambda (row)
                                       (cons (concat "C-c g " (car row)) (cdr row)))
                                     (gemini-companion-manual-test-rows 'global)))))
    (ert-info (section)
      (let ((described (gemini-companion-manual-test-keys section)))
        (should-not (seq-difference described rows))
        (should-not (seq-difference rows described))))))

(ert-deftest gemini-companion-readme-has-keys-of-the-table-of-commands ()
  (let ((table (gemini-companion-manual-test-rows 'review 'view 'panel))
        (count 0))
    (gemini-companion-manual-test-in "README.org"
      (re-search-forward "^\\* Keys in a review")
      (while (re-search-forward "^| \\(=.+?\\) +|"
                                (save-excursion (search-forward "\n\n")) t)
        (let ((keys (remove "C-x C-s"
                            (split-string (match-string 1) "[= ]*=[= ]*" t))))
          (cl-incf count)
          (ert-info ((match-string 1))
            (dolist (key keys)
              (should (assoc key table)))
            ;; Another key of a row has the command of its letter.
            (should (= (max 1 (seq-count (lambda (key) (= 1 (length key))) keys))
                       (length (seq-uniq (mapcar (lambda (key)
                                                   (cdr (assoc key table)))
                                                 keys)))))))))
    (should (< 5 count))))

(ert-deftest gemini-companion-manual-fits-an-info-window ()
  (skip-unless (executable-find "makeinfo"))
  (let ((file (make-temp-file "manual" nil ".info"))
        nodes)
    (should (equal 0 (call-process
                      "makeinfo" nil nil nil "-o" file
                      (expand-file-name "doc/gemini-companion.texi"
                                        gemini-companion-test-root))))
    (with-temp-buffer
      (insert-file-contents file)
      (while (re-search-forward "^File: .*?,  Node: \\(.*?\\)," nil t)
        (push (match-string 1) nodes))
      (should (equal (delete-dups (copy-sequence nodes)) nodes))
      (goto-char (point-min))
      ;; Info shortens the headers of nodes.
      (flush-lines "^File: ")
      (should-not (re-search-forward "^.\\{80,\\}" nil t))
      ;; Functions are indexed by name.
      (goto-char (point-min))
      (search-forward "Command and Function Index\n**")
      (should-not (re-search-forward "^\\* (" nil t)))))

(ert-deftest gemini-companion-manual-parts-rows-of-several-lines ()
  (gemini-companion-manual-test-in "doc/gemini-companion.org"
    (while (re-search-forward "\\(?:^|.*\n\\)+" nil t)
      (let ((rows (split-string (match-string 0) "\n" t)))
        ;; One goes on below an empty cell.
        (when (seq-some (apply-partially #'string-match-p "\\`| +|.*[^| ]") rows)
          (ert-info ((car rows))
            (should (seq-some (apply-partially #'string-match-p "\\`|[| ]+\\'")
                              rows)))))))
  ;; makeinfo leaves out a row without any text.
  (gemini-companion-manual-test-in "doc/gemini-companion.texi"
    (should (save-excursion (search-forward "@item @w{ }" nil t)))
    (should-not (re-search-forward "^@item *\\(?:\n@tab *\\)+\n@\\(?:item\\|end\\)"
                                   nil t))))

(ert-deftest gemini-companion-options-have-version-and-fitting-type ()
  (dolist (option (gemini-companion-manual-test-options))
    (ert-info ((symbol-name option))
      (should (get option 'custom-package-version))
      (should (widget-apply (widget-convert (get option 'custom-type))
                            :match (eval (car (get option 'standard-value)) t)))
      (should (get option 'variable-documentation)))))

;;;; Defaults

(defun gemini-companion-manual-test-items ()
  "Return the options that the manual describes, conses (OPTION . TEXT).
TEXT has no line breaks."
  (gemini-companion-manual-test-in "doc/gemini-companion.org"
    (let ((items nil))
      (while (re-search-forward "^- User Option: \\(\\S-+\\) ::" nil t)
        (let ((option (intern (match-string 1)))
              (start (point)))
          (re-search-forward "^[^ \n]\\|\\'")
          (push (cons option
                      (string-clean-whitespace
                       (buffer-substring start (match-beginning 0))))
                items)))
      items)))

(defun gemini-companion-manual-test-states-default-p (text value)
  "Return non-nil if a sentence of TEXT with \"default\" has VALUE.
For a file or directory, compare the last part of its name, as verbatim text."
  (let ((case-fold-search t)
        (token (pcase value
                 ('nil "\\_<nil\\_>")
                 ('t "\\(?:~\\|\\_<\\)t\\(?:~\\|\\_>\\)\\|non-nil")
                 ((pred stringp)
                  (format "=\\(?:[^=]+/\\)?%s/?="
                          (regexp-quote (file-name-nondirectory
                                         (directory-file-name value)))))
                 (_ (regexp-quote (format "~%S~" value))))))
    (seq-some (lambda (sentence)
                (and (string-match-p "\\_<default\\_>" sentence)
                     (string-match-p token sentence)))
              ;; A sentence or a clause between semicolons.
              (split-string text "[.;]\\(?: +\\|\\'\\)" t))))

(ert-deftest gemini-companion-manual-states-the-default-of-each-option ()
  (let ((wrong nil))
    (pcase-dolist (`(,option . ,text) (gemini-companion-manual-test-items))
      (let ((value (eval (car (get option 'standard-value)) t)))
        (unless (or (gemini-companion-manual-test-states-default-p text value)
                    ;; Too long for a sentence, or a hook.
                    (memq option '(gemini-companion-excluded
                                   gemini-companion-remote-commands))
                    (and (null value)
                         (string-match-p "-\\(?:hook\\|functions\\)\\'"
                                         (symbol-name option))))
          (push (list option value) wrong))))
    (should-not wrong)))

(ert-deftest gemini-companion-readme-has-the-defaults-of-options ()
  (let ((count 0))
    (gemini-companion-manual-test-in "README.org"
      (re-search-forward "^| option ")
      (while (re-search-forward "^| =\\(gemini-[a-z-]+\\)= *| \\(\\S-+\\)" nil t)
        (let ((option (intern (match-string 1)))
              (stated (match-string 2)))
          (cl-incf count)
          (ert-info ((symbol-name option))
            (should (custom-variable-p option))
            (unless (eq option 'gemini-companion-excluded)
              (should (equal (format "=%S=" (eval (car (get option 'standard-value)) t))
                             stated)))))))
    (should (< 3 count))))

;; Other figures are constants that only their files know.
(ert-deftest gemini-companion-manual-has-the-figures-of-the-code ()
  "A section, by its CUSTOM_ID, has the figure of a constant, with its unit."
  (pcase-dolist (`(,section ,figure ,value)
                 `(("notifications" "ten seconds"
                    ,(= 10 gemini-companion-notify-turn-seconds))
                   ("views" "20 lines" ,(= 20 gemini-companion-windows-review-lines))
                   ("edit-errors" "128 KB"
                    ,(= (* 128 1024) gemini-companion-eglot-sendable))
                   ("edit-errors" "three seconds"
                    ,(< 2 gemini-companion-errors-timeout 3))))
    (ert-info ((format "%s: %s" section figure))
      (should value)
      (should (string-search
               figure
               (string-clean-whitespace
                (alist-get section (gemini-companion-manual-test-sections)
                           "" nil #'equal)))))))

;;;; Links, pictures and files

(defconst gemini-companion-manual-test-linking
  '("README.org" "NEWS.org" "CONTRIBUTING.org" "doc/gemini-companion.org"
    "doc/design.org" "doc/design-flows.org" "doc/conformance.org" "doc/emacs-31.org"
    "bench/README.org")
  "What is checked for links.")

(defun gemini-companion-manual-test-anchors (file)
  "Return the names that a link may have behind FILE: ids and headings."
  (gemini-companion-manual-test-in file
    (append (mapcar (apply-partially #'concat "#")
                    (gemini-companion-manual-test-matches ":CUSTOM_ID: +\\(\\S-+\\)"))
            (progn (goto-char (point-min))
                   (mapcar (apply-partially #'concat "*")
                           (gemini-companion-manual-test-matches "^\\*+ \\(.+\\)"))))))

(ert-deftest gemini-companion-links-of-documents-lead-somewhere ()
  (let ((wrong nil))
    (dolist (file gemini-companion-manual-test-linking)
      (dolist (link (gemini-companion-manual-test-in file
                      (gemini-companion-manual-test-matches
                       "\\[\\[\\([^]]+\\)\\]\\(?:\\[\\|\\]\\)")))
        (unless (string-match-p "\\`\\(?:https\\|info\\):" link)
          (pcase-let* ((`(,to ,place)
                        (if (string-prefix-p "file:" link)
                            (split-string (string-remove-prefix "file:" link) "::")
                          (list "" link)))
                       (target (if (equal to "")
                                   file
                                 (file-relative-name
                                  (expand-file-name to (file-name-directory
                                                        (expand-file-name
                                                         file gemini-companion-test-root)))
                                  gemini-companion-test-root))))
            (unless (and (file-exists-p
                          (expand-file-name target gemini-companion-test-root))
                         (or (null place)
                             (member place
                                     (gemini-companion-manual-test-anchors target))))
              (push (list file link) wrong))))))
    ;; Sections that are named, not linked.
    (gemini-companion-manual-test-in "doc/gemini-companion.org"
      (should-not (re-search-forward "(see section\\|the section [\"*]" nil t)))
    (should-not wrong)))

(ert-deftest gemini-companion-pictures-are-whole-and-each-is-shown-and-made ()
  (let ((shown (gemini-companion-manual-test-in "README.org"
                 (gemini-companion-manual-test-matches
                  "doc/\\([a-z]+\\.\\(?:png\\|gif\\)\\)[]\"]")))
        (made (gemini-companion-manual-test-in "dev/pictures.py"
                (gemini-companion-manual-test-matches
                 "^    \"\\([a-z]+\\.\\(?:png\\|gif\\)\\)\": (")))
        (there (directory-files (expand-file-name "doc" gemini-companion-test-root)
                                nil "\\.\\(?:png\\|gif\\)\\'")))
    (should (equal (sort (delete-dups shown) #'string<) there))
    (should (equal (sort made #'string<) there))
    (dolist (picture there)
      (ert-info (picture)
        (with-temp-buffer
          (set-buffer-multibyte nil)
          (insert-file-contents-literally
           (expand-file-name (concat "doc/" picture) gemini-companion-test-root))
          ;; With another size or place of the canvas, programs show only a part.
          (should-not (re-search-forward "caNv\\|oFFs\\|vpAg" 1000 t)))))
    ;; Who cannot see a picture reads what is in it.
    (gemini-companion-manual-test-in "README.org"
      (while (search-forward "<img " nil t)
        (should (looking-at "src=\"[^\"]+\" alt=\"[^\"]\\{40,\\}\">"))))))

(ert-deftest gemini-companion-files-that-documents-name-exist ()
  (let ((wrong nil))
    (dolist (file '("README.org" "NEWS.org" "CONTRIBUTING.org" "doc/design.org"
                    "doc/design-flows.org" "doc/conformance.org" "doc/emacs-31.org" "doc/gemini-companion.org"
                    "bench/README.org"))
      (dolist (name (gemini-companion-manual-test-in file
                      (gemini-companion-manual-test-matches
                       (concat "[=~]\\(?:\\.venv/bin/python \\)?"
                               "\\(\\(?:\\.github\\|dev\\|doc\\|python\\|test\\|bench"
                               "\\|examples\\)/[^=~ \n:]+\\|"
                               "gemini-companion[a-z-]*\\.el\\|[A-Z][A-Za-z]+\\.org\\)"))))
        (unless (or (string-match-p "FILE\\|SCRIPT\\|WING" name)
                    (file-expand-wildcards
                     (directory-file-name
                      (expand-file-name name gemini-companion-test-root)))
                    (file-expand-wildcards
                     (expand-file-name (concat "test/lisp/" name)
                                       gemini-companion-test-root))
                    (file-expand-wildcards
                     (expand-file-name (concat "test/lisp/*/" name)
                                       gemini-companion-test-root))
                    (member (file-name-base name)
                            gemini-companion-manual-test-features))
          (push (list file name) wrong))))
    (should-not wrong)))

(ert-deftest gemini-companion-commands-of-the-shell-in-documents-exist ()
  (let ((targets (gemini-companion-manual-test-in "Makefile"
                   (append (gemini-companion-manual-test-matches
                            "^\\([a-z]+\\):")
                           '("lint" "ert" "pytest" "e2e"))))
        (parts (gemini-companion-manual-test-in "dev/test"
                 (append
                  (gemini-companion-manual-test-matches "^\\([a-z][a-z0-9-]+\\)() {")
                  ;; Those that consist of others.
                  (progn (goto-char (point-min))
                         (gemini-companion-manual-test-matches
                          "^        \\([a-z][a-z-]+\\))$")))))
        (wrong nil))
    (dolist (file gemini-companion-manual-test-linking)
      (pcase-dolist (`(,regexp . ,known)
                     `(("[=~]make[ \n]+\\([a-z0-9]+\\)" . ,targets)
                       ("dev/test[ \n]+\\([a-z][a-z0-9-]+\\)" . ,parts)))
        (dolist (word (gemini-companion-manual-test-in file
                        (gemini-companion-manual-test-matches regexp)))
          (unless (member word known)
            (push (list file word) wrong)))))
    (should-not wrong)))

;; The address is in README.org, whose reader pastes it.  There is one copy: package-lint
;; and package archives demand it in the header of the main file, from which
;; `dev/package' takes it, and neither of the two can include the other.
(ert-deftest gemini-companion-address-is-in-readme-and-the-header-alone ()
  (let ((address (gemini-companion-manual-test-in "README.org"
                   (re-search-forward ":vc (:url \"https://\\([^\"]+\\)\"")
                   (match-string 1)))
        (places nil))
    (dolist (file (append
                   (mapcar (apply-partially #'concat "doc/")
                           (directory-files (expand-file-name
                                             "doc" gemini-companion-test-root)
                                            nil "\\.\\(?:org\\|texi\\)\\'"))
                   (directory-files gemini-companion-test-root nil
                                    "\\.\\(?:org\\|el\\|toml\\)\\'\\|\\`Eask\\'")
                   (cdr (gemini-companion-test-sources))
                   (mapcar (apply-partially #'concat ".github/workflows/")
                           (directory-files
                            (expand-file-name ".github/workflows"
                                              gemini-companion-test-root)
                            nil "\\.yml\\'"))))
      (gemini-companion-manual-test-in file
        ;; Behind the host.
        (while (re-search-forward (regexp-quote (string-trim-left address "[^/]+/"))
                                  nil t)
          (push (list file (buffer-substring (line-beginning-position)
                                             (line-end-position)))
                places))))
    (should (equal (sort places (lambda (a b) (string< (car a) (car b))))
                   `(("README.org" ,(format "  :vc (:url \"https://%s\"" address))
                     ("gemini-companion.el" ,(format ";; URL: https://%s" address)))))))

;;;; The house

(defun gemini-companion-manual-test-table ()
  "Return the rows of the tables of files in design.org.
It is a list of (WING . FILE), where FILE is a name without its prefix."
  (gemini-companion-manual-test-in "doc/design.org"
    (re-search-forward "^\\* The wings of the Lisp$")
    (let ((end (save-excursion (re-search-forward "^\\* ") (point)))
          (wing nil)
          (rows nil))
      (while (re-search-forward "^\\*\\* \\(.+\\)$\\|^| =\\([^=/]+\\)= +|" end t)
        (if (match-string 1)
            (setq wing (match-string 1))
          (push (cons wing (match-string 2)) rows)))
      (nreverse rows))))

(defun gemini-companion-manual-test-feature (file)
  "Return the feature of FILE, a name without its prefix."
  (if (equal file "gemini-companion")
      file
    (concat "gemini-companion-" file)))

(defmacro gemini-companion-manual-test-in-each-file (variable &rest body)
  "Evaluate BODY for each file of the package, in a buffer with its text.
VARIABLE is bound to its feature, a string."
  (declare (indent 1) (debug t))
  `(dolist (source (gemini-companion-test-sources))
     (let ((,variable (file-name-base source)))
       (ert-info (,variable)
         (gemini-companion-manual-test-in source
           (set-syntax-table emacs-lisp-mode-syntax-table)
           ,@body)))))

(ert-deftest gemini-companion-files-are-in-the-tables-of-the-design ()
  (should (equal (sort (mapcar (lambda (row)
                                 (format "lisp/%s/gemini-companion-%s.el"
                                         (car row) (cdr row)))
                               (gemini-companion-manual-test-table))
                       #'string<)
                 (sort (mapcar (lambda (file)
                                 (file-relative-name file gemini-companion-test-root))
                               (cdr (gemini-companion-test-sources)))
                       #'string<))))

;; The others stand between these, in the order in which a reader needs them.
(defconst gemini-companion-manual-test-first-sections
  '("Customization" "Keys" "State")
  "Sections that come first, in this order.")

(defconst gemini-companion-manual-test-last-sections '("Life" "Commands")
  "Sections that come last, in this order.")

(defun gemini-companion-manual-test-ordered (sections)
  "Return SECTIONS in the order that they are to have."
  (append (seq-filter (lambda (section) (member section sections))
                      gemini-companion-manual-test-first-sections)
          (seq-remove (lambda (section)
                        (or (member section
                                    gemini-companion-manual-test-first-sections)
                            (member section
                                    gemini-companion-manual-test-last-sections)))
                      sections)
          (seq-filter (lambda (section) (member section sections))
                      gemini-companion-manual-test-last-sections)))

(ert-deftest gemini-companion-files-have-their-sections-in-one-order ()
  "No section is empty, and none comes twice."
  (gemini-companion-manual-test-in-each-file feature
    (let ((sections nil))
      (while (re-search-forward "^;;;; \\(.+\\)$" nil t)
        (push (match-string 1) sections)
        (forward-line)
        (should-not (looking-at-p "[\n ]*\\(?:;;;; \\|(provide \\|;;; \\)")))
      (should (equal (gemini-companion-manual-test-ordered (reverse sections))
                     (reverse sections)))
      (should (equal (seq-uniq sections) sections)))))

(ert-deftest gemini-companion-lisp-has-no-file-beside-its-directories ()
  "The package manager of Emacs 31 would take lisp/ for the package."
  (should-not (directory-files (expand-file-name "lisp" gemini-companion-test-root)
                               nil "\\.el\\'")))

(ert-deftest gemini-companion-nouns-of-the-design-have-their-files ()
  (let ((files (gemini-companion-manual-test-in "doc/design.org"
                 (gemini-companion-manual-test-matches
                  "^| [A-Za-z, -]+ +| =\\([a-z-]+/[a-z-]+\\)="))))
    (should (< 10 (length files)))
    (dolist (file files)
      (ert-info (file)
        (should (file-exists-p
                 (expand-file-name
                  (format "lisp/%sgemini-companion-%s.el" (file-name-directory file)
                          (file-name-nondirectory file))
                  gemini-companion-test-root)))))))

(defun gemini-companion-manual-test-read (file)
  "Return the forms in FILE."
  (gemini-companion-manual-test-in file
    (cl-loop for form = (ignore-error end-of-file (read (current-buffer)))
             while form collect form)))

(defun gemini-companion-manual-test-walk (function form)
  "Call FUNCTION with each symbol in FORM, but not with categories of displays."
  (pcase form
    ((pred symbolp) (funcall function form))
    (`(category . ,(pred symbolp)))
    ((pred vectorp) (mapc (apply-partially #'gemini-companion-manual-test-walk function)
                          form))
    ((pred consp)
     (while (consp form)
       (gemini-companion-manual-test-walk function (pop form)))
     (gemini-companion-manual-test-walk function form))))

(defun gemini-companion-manual-test-defined (form)
  "Return the symbol that is defined by FORM of a file, or nil."
  (pcase form
    (`(,(or 'defvar 'defvar-local) ,name) (ignore name))
    (`(,(or 'defun 'defmacro 'defsubst 'defvar 'defvar-local 'defconst 'defcustom
            'cl-defun 'cl-defmacro 'cl-defgeneric 'define-minor-mode
            'define-derived-mode)
       ,name . ,_)
     name)
    (`(cl-defstruct ,name . ,_) (if (consp name) (car name) name))))

(ert-deftest gemini-companion-files-use-their-wing-and-those-below ()
  "The names of commands are for keys and messages, and do not count."
  (let* ((wings (seq-uniq (mapcar #'car (gemini-companion-manual-test-table))))
         (sources (mapcar (lambda (file)
                            (cons file (gemini-companion-manual-test-read file)))
                          (cdr (gemini-companion-test-sources))))
         (level (lambda (file)
                  (seq-position wings (file-name-nondirectory
                                       (directory-file-name
                                        (file-name-directory file))))))
         (homes (make-hash-table))
         (wrong nil))
    (pcase-dolist (`(,file . ,forms) sources)
      (puthash (intern (file-name-base file)) file homes)
      (dolist (form forms)
        (when-let* ((name (gemini-companion-manual-test-defined form)))
          (puthash name file homes))))
    (pcase-dolist (`(,file . ,forms) sources)
      (gemini-companion-manual-test-walk
       (lambda (symbol)
         (when-let* ((home (gethash symbol homes))
                     ((< (funcall level file) (funcall level home)))
                     ((not (commandp symbol))))
           (push (list (file-name-base file) symbol) wrong)))
       forms))
    (should-not (seq-uniq wrong))))

(ert-deftest gemini-companion-functions-are-declared-in-the-files-that-have-them ()
  (let ((wrong nil))
    (gemini-companion-manual-test-in-each-file file
      (while (re-search-forward
              "(declare-function[ \n]+\\(gemini-companion[^ \n]*\\)[ \n]+\"\\([^\"]+\\)\"" nil t)
        (let* ((name (match-string 1))
               (home (save-match-data (symbol-file (intern name) 'defun))))
          (unless (and home (equal (match-string 2) (file-name-base home)))
            (push (list file name home) wrong)))))
    (should-not wrong)))

(ert-deftest gemini-companion-documents-name-only-what-exists-in-lisp ()
  (let ((regexp (format "=\\(\\(?:%s\\)-[a-z-]+\\)="
                        (regexp-opt (mapcar #'cdr
                                            (gemini-companion-manual-test-table)))))
        (python (gemini-companion-manual-test-python))
        (unknown nil))
    (dolist (file (gemini-companion-manual-test-documents-for-developers))
      (gemini-companion-manual-test-in file
        (when (equal file "doc/emacs-31.org")
          ;; Names of Emacs 31.
          (while (re-search-forward "^- [^:]*\\(?::[^:]+\\)*?::" nil t)
            (replace-match "" t t))
          (goto-char (point-min)))
        (dolist (name (gemini-companion-manual-test-matches regexp))
          (let ((symbol (intern (concat "gemini-companion-" name))))
            (unless (or (fboundp symbol) (boundp symbol) (featurep symbol)
                        (cl-find-class symbol)
                        ;; A call between Emacs and the server.
                        (string-search (format "\"%s\"" name) python)
                        (let ((other (intern-soft name)))
                          (and other (or (fboundp other) (boundp other)))))
              (push (list file name) unknown))))))
    (should-not unknown)))

(defun gemini-companion-manual-test-documents-for-developers ()
  "Return the names of the documents about the code."
  (append '("README.org" "CONTRIBUTING.org" "bench/README.org")
          (mapcar (lambda (name) (concat "doc/" name))
                  (remove "gemini-companion.org"
                          (directory-files
                           (expand-file-name "doc" gemini-companion-test-root)
                           nil "\\.org\\'")))))

(defun gemini-companion-manual-test-python (&optional directory)
  "Return the Python files of DIRECTORY, by default the server, as one text."
  (mapconcat (lambda (file)
               (gemini-companion-manual-test-in file (buffer-string)))
             (directory-files
              (expand-file-name (or directory "python/gemini_companion_epc")
                                gemini-companion-test-root)
              t "\\.py\\'")
             "\n"))

(ert-deftest gemini-companion-documents-name-only-what-exists-in-python ()
  (let ((python (concat (gemini-companion-manual-test-python)
                        (gemini-companion-manual-test-python "test/e2e/harness")))
        (case-fold-search nil)
        (unknown nil))
    (dolist (file (gemini-companion-manual-test-documents-for-developers))
      (gemini-companion-manual-test-in file
        (while (re-search-forward "=\\([A-Z][a-z][A-Za-z]+\\)\\.\\([a-z_]+\\)=" nil t)
          (pcase-dolist (`(,is ,name) `(("class" ,(match-string 1))
                                        ("def" ,(match-string 2))))
            (unless (save-match-data
                      (string-match-p (format "\\_<%s %s\\_>\\|^ *%s\\_>.*[:=]" is name
                                              name)
                                      python))
              (push (list file name) unknown))))))
    (should-not unknown)))

(ert-deftest gemini-companion-design-has-short-sections-of-flows ()
  (dolist (section (split-string (gemini-companion-manual-test-in "doc/design-flows.org"
                                   (buffer-string))
                                 "^\\* " t))
    (ert-info ((car (split-string section "\n")))
      (should (<= (length (split-string (string-trim section) "\n")) 40)))))

(ert-deftest gemini-companion-documents-have-no-wide-lines ()
  (pcase-dolist (`(,file . ,columns)
                 '(("doc/design.org" . 80) ("doc/design-flows.org" . 80)
                   ("doc/conformance.org" . 80)
                   ("doc/emacs-31.org" . 100)
                   ("README.org" . 100) ("CONTRIBUTING.org" . 100) ("NEWS.org" . 100)
                   ("doc/gemini-companion.org" . 100)))
    (ert-info (file)
      (gemini-companion-manual-test-in file
        (should-not (re-search-forward (format "^.\\{%d\\}" (1+ columns))
                                       nil t))))))

(defun gemini-companion-manual-test-owner (name)
  "Return the feature that owns NAME: the longest one that NAME begins with."
  (car (seq-sort-by #'length #'>
                    (seq-filter (lambda (feature)
                                  (string-match-p (format "\\`%ss?\\(?:-\\|\\'\\)" feature)
                                                  name))
                                gemini-companion-manual-test-features))))

(defun gemini-companion-manual-test-api ()
  "Return the names of functions and variables in the manual.
They are named for the user."
  (gemini-companion-manual-test-in "doc/gemini-companion.org"
    (cl-loop while (re-search-forward "\\_<gemini-companion-[a-z-]+" nil t)
             collect (match-string 0))))

(ert-deftest gemini-companion-names-begin-with-the-name-of-their-file ()
  (let ((api (gemini-companion-manual-test-api))
        (foreign nil))
    (gemini-companion-manual-test-in-each-file file
      (while (re-search-forward
              (concat "^(\\(?:cl-\\)?def\\(?:un\\|macro\\|subst\\|generic\\|var\\|"
                      "var-local\\|const\\|struct\\) (?\\(gemini-companion[^ )\n]*\\)"
                      "\\(?: \\|$\\)")
              nil t)
        (let ((name (match-string 1)))
          (unless (or (equal file (gemini-companion-manual-test-owner name))
                      (member name api)
                      (commandp (intern name)))
            (push (cons file name) foreign)))))
    (should-not foreign)))

(ert-deftest gemini-companion-accessors-are-not-inlined ()
  (gemini-companion-manual-test-in-each-file file
    (while (re-search-forward "^(cl-defstruct " nil t)
      (goto-char (match-beginning 0))
      (let ((form (read (current-buffer))))
        (should (equal '(:noinline t)
                       (and (consp (nth 1 form)) (assq :noinline (nth 1 form)))))))))

(defun gemini-companion-manual-test-accessor (place)
  "Return the accessor of PLACE, or of that in which PLACE is, a symbol."
  (pcase place
    (`(cl-struct-slot-value ',type ',slot . ,_) (intern (format "%s-%s" type slot)))
    ((or `(,(or 'car 'cdr 'aref 'elt 'plist-get) ,whole . ,_)
         `(,(or 'nth 'nthcdr 'alist-get 'gethash) ,_ ,whole . ,_))
     (gemini-companion-manual-test-accessor whole))
    (_ (car-safe place))))

(defun gemini-companion-manual-test-places (form)
  "Return the accessors in FORM whose places it changes, a list of symbols."
  (pcase form
    (`(,head . ,_)
     (append (mapcar #'gemini-companion-manual-test-accessor
                     (pcase form
                       (`(setf . ,places)
                        (cl-loop for place in places by #'cddr
                                 collect place))
                       (`(,(or 'cl-rotatef 'cl-shiftf) . ,places)
                        places)
                       (`(,(or 'cl-incf 'cl-decf 'pop 'setcar 'setcdr) ,place . ,_)
                        (list place))
                       (`(,(or 'push 'cl-pushnew 'cl-callf) ,_ ,place . ,_)
                        (list place))
                       (`(cl-callf2 ,_ ,_ ,place . ,_) (list place))))
             (gemini-companion-manual-test-places head)
             (gemini-companion-manual-test-places (cdr form))))))

(ert-deftest gemini-companion-slots-are-found-where-they-are-set ()
  (dolist (form '((setf y 1 (a-slot x) 2)
                  (push 1 (a-slot x))
                  (cl-callf2 delq 1 (a-slot x))
                  (progn (setf (car (a-slot x)) 1))
                  (setf (alist-get 'key (a-slot x)) 1)
                  (setf (cl-struct-slot-value 'a 'slot x) 1)
                  (setcdr (a-slot x) nil)
                  (cl-rotatef (a-slot x) y)))
    (should (equal '(a-slot) (delq nil (gemini-companion-manual-test-places form))))))

(ert-deftest gemini-companion-slots-are-set-in-one-file ()
  (let ((files (make-hash-table)))
    (gemini-companion-manual-test-in-each-file file
      (ignore-error end-of-file
        (while t
          (dolist (place (gemini-companion-manual-test-places (read (current-buffer))))
            (cl-pushnew file (gethash place files) :test #'equal)))))
    (should (equal '("gemini-companion-proposal")
                   (gethash 'gemini-companion-edit-answer files)))
    (maphash
     (lambda (place setters)
       (ert-info ((format "%s: %s" place setters))
         (should (or (null (cdr setters))
                     (not (string-prefix-p "gemini-companion-" (symbol-name place)))
                     ;; Each kind of view sets its own; a content is made in two steps.
                     (memq place '(gemini-companion-view-buffers
                                   gemini-companion-view-hunks
                                   gemini-companion-content-bytes
                                   gemini-companion-content-reported))))))
     files)))

(defun gemini-companion-manual-test-expansions (form)
  "Return the names in FORM that are expanded in a directory, unless constants."
  (pcase form
    (`(expand-file-name ,name ,_)
     (pcase name
       ((or (pred stringp)
            `(if ,_ ,(pred stringp) ,(pred stringp))
            `(,(or 'concat 'format) ,(rx bos (not (any "~%"))) . ,_))
        nil)
       (_ (list name))))
    ;; With a list of names, it has no directory.
    (`(mapcar #'expand-file-name . ,rest)
     (gemini-companion-manual-test-expansions rest))
    (`(function expand-file-name) (list form))
    (`(,head . ,tail)
     (append (gemini-companion-manual-test-expansions head)
             (gemini-companion-manual-test-expansions tail)))))

(ert-deftest gemini-companion-names-of-other-programs-are-not-expanded ()
  (should (equal '(name (function expand-file-name) (format "%s.el" x))
                 (gemini-companion-manual-test-expansions
                  '(progn (expand-file-name name directory)
                          (expand-file-name "a" directory)
                          (expand-file-name (concat "a" x) directory)
                          (mapcar #'expand-file-name names)
                          (apply #'expand-file-name names)
                          (expand-file-name (format "%s.el" x) directory)))))
  (gemini-companion-manual-test-in-each-file file
    (ert-info ((format "%s: use `gemini-companion-names-below'" file))
      (ignore-error end-of-file
        (while t
          (should-not (gemini-companion-manual-test-expansions
                       (read (current-buffer)))))))))

(ert-deftest gemini-companion-names-are-shown-by-functions-that-escape-them ()
  (let ((raw nil))
    (gemini-companion-manual-test-in-each-file file
      (while (re-search-forward
              "\\_<\\(abbreviate-file-name\\|error-message-string\\)\\_>" nil t)
        (when (or (equal "abbreviate-file-name" (match-string 1))
                  ;; They show errors about files of the project.
                  (string-match-p "/lisp/\\(?:edits\\|changes\\|pages\\|review\\)/" source))
          (cl-pushnew file raw :test #'equal))))
    (should (equal '("gemini-companion"        ; names the directory of the package
                     "gemini-companion-names"
                     "gemini-companion-revert") ; compares names
                   (sort raw #'string<)))))

(ert-deftest gemini-companion-ways-out-of-emacs-ask-one-predicate ()
  (let ((users nil))
    (gemini-companion-manual-test-in-each-file file
      (when (re-search-forward "(?#?'?gemini-companion-privacy-name-hidden-p\\_>" nil t)
        (push file users)))
    ;; Others ask `gemini-companion-context-text-shared-p', which knows the roots.
    (should (equal '("gemini-companion-commit"    ; words of a prompt, for a message
                     "gemini-companion-compose"   ; a file that the user drops
                     "gemini-companion-context"   ; that predicate
                     "gemini-companion-lookup"    ; the place of a definition, no text
                     "gemini-companion-privacy"
                     "gemini-companion-saved"     ; has its own roots, those of the edits
                     "gemini-companion-send"      ; asks about files outside
                     "gemini-companion-shell"     ; the server knows the roots
                     "gemini-companion-trash")    ; the file itself
                   (sort users #'string<)))))

(ert-deftest gemini-companion-no-file-follows-two-streams-for-the-same-thing ()
  (let ((several nil))
    (gemini-companion-manual-test-in-each-file file
      (let ((streams (seq-filter
                      (lambda (stream)
                        (goto-char (point-min))
                        (re-search-forward
                         (format "\\(?:^ *'?(*\\|add-hook '\\)gemini-companion-%s-functions\\_>"
                                 stream)
                         nil t))
                      '("request" "edit-file" "changes"))))
        (when (cdr streams)
          (push (cons file streams) several))))
    (should (equal
             '(;; It checks each event.
               ("gemini-companion-invariants" "edit-file" "changes")
               ;; What waits, and what was written.
               ("gemini-companion-overview" "request" "changes")
               ;; It restores a record before a write, and saves it after that.
               ("gemini-companion-saved" "edit-file" "changes"))
             (sort several (lambda (a b) (string< (car a) (car b))))))))

(ert-deftest gemini-companion-options-come-before-functions ()
  (gemini-companion-manual-test-in-each-file file
    (when (re-search-forward
           "^(\\(?:cl-def\\(?:un\\|generic\\|method\\)\\|defun\\|define-[a-z-]+mode\\) " nil t)
      (should-not (re-search-forward "^(def\\(?:custom\\|group\\|face\\) " nil t)))))

(ert-deftest gemini-companion-windows-are-set-only-in-their-files ()
  (let ((regexp (rx (or "(" "#'")
                    (or "delete-other-windows" "delete-window"
                        "save-window-excursion" "set-window-buffer"
                        "set-window-configuration" "set-window-dedicated-p"
                        "set-window-parameter" "split-window"
                        (seq "split-window-" (or "below" "right"))
                        "window-resize")
                    symbol-end)))
    (gemini-companion-manual-test-in-each-file file
      (unless (string-prefix-p "gemini-companion-windows" file)
        (should-not (re-search-forward regexp nil t))))))

(ert-deftest gemini-companion-long-functions-have-docstrings ()
  (let ((without nil))
    (gemini-companion-manual-test-in-each-file file
      (while (re-search-forward
              "^(\\(?:cl-\\)?def\\(?:un\\|macro\\|subst\\|generic\\|method\\) " nil t)
        (let* ((start (match-beginning 0))
               (form (progn (goto-char start)
                            (read (current-buffer))))
               ;; A method may have a qualifier before its arguments.
               (body (cdr (seq-drop-while (lambda (part)
                                            (and part (atom part)))
                                          (cddr form)))))
          (when (and (< 10 (count-lines start (point)))
                     (not (stringp (car body))))
            (push (cadr form) without)))))
    (should-not without)))

(ert-deftest gemini-companion-files-have-files-of-tests ()
  (dolist (source (gemini-companion-test-sources))
    (ert-info (source)
      ;; lisp/WING/NAME.el has test/lisp/WING/NAME-test.el.
      (gemini-companion-manual-test-in
          (format "test/lisp/%s-test.el"
                  (replace-regexp-in-string
                   "\\`lisp/" ""
                   (file-name-sans-extension
                    (file-relative-name source gemini-companion-test-root))))
        (should (re-search-forward "^(ert-deftest " nil t))))))

;;;; Hostile texts

(defun gemini-companion-manual-test-regexps (form)
  "Return the regexps with a repetition in FORM, code, a list of strings.
A function that matches at point has one that begins there."
  (pcase form
    ((pred stringp)
     (and (string-match-p "[*+]\\|\\\\{" form)
          (not (string-prefix-p " *" form)) ; the name of a buffer
          (list form)))
    ((pred vectorp)
     (gemini-companion-manual-test-regexps (append form nil)))
    ;; It is matched at point, and a screen has few columns.
    (`(defconst gemini-companion-prompt--text-behind . ,_) nil)
    (`(,(or 'defconst 'defvar 'defcustom) ,name . ,_)
     (if (stringp (ignore-errors (symbol-value name)))
         (gemini-companion-manual-test-regexps (symbol-value name))
       (gemini-companion-manual-test-regexps (list (nth 2 form)))))
    ((or `(,(or 'concat 'format 'string-join 'rx) . ,_))
     (let ((value (ignore-errors (eval form t))))
       (and (stringp value) (gemini-companion-manual-test-regexps value))))
    (`(,(or 'looking-at 'looking-at-p 'looking-back) . ,arguments)
     (mapcar (apply-partially #'format "\\`\\(?:%s\\)")
             (gemini-companion-manual-test-regexps arguments)))
    (`(,(or 'string-trim 'string-trim-left 'string-trim-right) . ,arguments)
     (cons "[ \t\n\r]+\\'" (gemini-companion-manual-test-regexps arguments)))
    (`(,head . ,_)
     (let ((forms (if (and (symbolp head) (get head 'doc-string-elt))
                      (seq-remove #'stringp form)
                    form))
           (regexps nil))
       (while (consp forms)
         (setq regexps (nconc (gemini-companion-manual-test-regexps (pop forms))
                              regexps)))
       regexps))))

(defun gemini-companion-manual-test-seconds (function)
  "Return the seconds of CPU time that FUNCTION takes, best of five.
After a call of less than 10 ms, stop."
  (let ((best 1.0e+INF))
    (cl-loop repeat 5 while (< 0.01 best)
             do (let ((began (float-time (get-internal-run-time))))
                  (funcall function)
                  (setq best (min best (- (float-time (get-internal-run-time))
                                          began)))))
    best))

(defun gemini-companion-manual-test-repeated (piece length)
  "Return two texts of LENGTH that repeat PIECE, one with another end."
  (let ((text (string-join (make-list (/ length (length piece)) piece))))
    (list text (concat text "\0/!"))))

(defun gemini-companion-manual-test-hostile (regexp table)
  "Return lists of texts that may take REGEXP long, all of 60 characters first.
The others are a list for each text, of 10 kB.
TABLE has those of other regexps."
  (let* ((pieces (seq-take
                  (seq-uniq
                   (mapcar #'string
                           (append "a1 \n/.~" (seq-difference regexp "()|?*+`'") nil)))
                  16))
         (pairs (cons ".~a" (cl-loop for a in pieces
                                     append (mapcar (apply-partially #'concat a)
                                                    pieces)))))
    (cl-flet ((repeated (pieces length)
                (cl-loop for piece in pieces
                         for key = (cons length piece)
                         append (or (gethash key table)
                                    (puthash key (gemini-companion-manual-test-repeated
                                                  piece length)
                                             table)))))
      (cons (repeated pairs 60)
            (mapcar #'list (repeated pieces 10000))))))

(defun gemini-companion-manual-test-slow-p (regexp texts)
  "Return non-nil if a match of REGEXP in one of TEXTS takes more than 10 ms.
They are timed one by one only if that is the time of all."
  (and (< 0.01 (gemini-companion-manual-test-seconds
                (lambda ()
                  (dolist (text texts)
                    (string-match-p regexp text)))))
       (or (null (cdr texts))
           (seq-some (lambda (text)
                       (gemini-companion-manual-test-slow-p regexp (list text)))
                     texts))))

(ert-deftest gemini-companion-regexps-are-fast-for-hostile-texts ()
  ;; A name, a command, a title, a prompt or a line of a file is any text.
  (let ((regexps nil)
        (table (make-hash-table :test #'equal))
        (gc-cons-threshold most-positive-fixnum))
    (gemini-companion-manual-test-in-each-file file
      (ignore-error end-of-file
        (while t
          (dolist (regexp (gemini-companion-manual-test-regexps
                           (read (current-buffer))))
            (when (ignore-errors (string-match-p regexp "") t)
              (cl-pushnew regexp regexps :test #'equal))))))
    (should (< 90 (length regexps)))
    (should-not
     (seq-filter
      (lambda (regexp)
        ;; 60 characters for exponential time, 10 kB for quadratic time.
        (seq-some (apply-partially #'gemini-companion-manual-test-slow-p regexp)
                  (gemini-companion-manual-test-hostile regexp table)))
      regexps))))

;;; gemini-companion-manual-test.el ends here
