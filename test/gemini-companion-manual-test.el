;;; gemini-companion-manual-test.el --- The manual is complete  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

;; Its widgets are the types of options.
(require 'cus-edit)
(require 'gemini-companion)
(require 'gemini-companion-commands)
(require 'gemini-companion-test-helper)
(require 'wid-edit)

(defconst gemini-companion-manual-test-features
  (mapcar #'file-name-base
          (seq-remove (apply-partially #'string-suffix-p "-autoloads.el")
                      (directory-files gemini-companion-test-root nil
                                       "\\`gemini-companion.*\\.el\\'")))
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

(ert-deftest gemini-companion-commands-are-for-users-or-private ()
  :tags '(pure)
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

(ert-deftest gemini-companion-manual-and-readme-name-only-what-exists ()
  (pcase-dolist
      (`(,file ,kinds ,regexp)
       '(("doc/gemini-companion.org" (fboundp boundp facep)
          "^- \\(?:[A-Z][A-Za-z ]+: \\)?\\(gemini-companion-[a-z-]+\\)[^:]*::")
         ("doc/gemini-companion.org" (fboundp boundp facep)
          "[~ (']\\(gemini-companion-[a-z-]+\\)[~)]")
         ("README.org" (boundp) "=\\(gemini-companion-[a-z-]+\\)=")
         ("README.org" (commandp) "=M-x \\(gemini-companion-[a-z-]+\\)=")))
    (gemini-companion-manual-test-in file
      (while (re-search-forward regexp nil t)
        (let ((symbol (intern (match-string 1))))
          (ert-info ((format "%s in %s" symbol file))
            (should (seq-some (lambda (kind) (funcall kind symbol)) kinds))))))))

(defun gemini-companion-manual-test-keys (&optional section)
  "Return the keys that the manual describes, conses (KEY . COMMAND).
If SECTION is non-nil, only those of that section."
  (gemini-companion-manual-test-in "doc/gemini-companion.org"
    (let (keys end)
      (when section
        (re-search-forward (format "^\\*+ %s$" section))
        (setq end (save-excursion (re-search-forward "^\\*+ "))))
      (while (re-search-forward "^- Key: \\(.+\\) (\\([a-z-]+\\)) ::" end t)
        (push (cons (match-string 1) (intern (match-string 2))) keys))
      keys)))

;; The address is in README.org, whose reader pastes it.  There is one copy: package-lint
;; and package archives demand it in the header of the main file, from which
;; `dev/package' takes it, and neither of the two can include the other.
(ert-deftest gemini-companion-address-is-in-readme-and-the-header-alone ()
  :tags '(pure)
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

(ert-deftest gemini-companion-manual-has-the-keys-that-are-bound ()
  (let ((described (gemini-companion-manual-test-keys))
        maps)
    (mapatoms
     (lambda (symbol)
       (when (and (string-prefix-p "gemini-companion-" (symbol-name symbol))
                  (boundp symbol)
                  (keymapp (symbol-value symbol)))
         (push (symbol-value symbol) maps))))
    (pcase-dolist (`(,key . ,command) described)
      (ert-info ((format "%s (%s)" key command))
        (should (seq-some (lambda (map) (eq command (lookup-key map (kbd key))))
                          (cons (let ((map (make-sparse-keymap)))
                                  (define-key map (kbd "C-c g")
                                              'gemini-companion-command-map)
                                  map)
                                maps)))))))

(defun gemini-companion-manual-test-rows (&rest places)
  "Return the rows of the table of commands in PLACES, conses (KEY . COMMAND)."
  (seq-uniq (mapcar (lambda (row) (cons (car row) (cadr row)))
                    (seq-mapcat #'gemini-companion-commands-in places))))

(ert-deftest gemini-companion-manual-has-the-keys-of-the-table-of-commands ()
  (pcase-dolist (`(,section . ,rows)
                 (list (cons "Keys in a review"
                             (gemini-companion-manual-test-rows
                              'review 'view 'unified 'panel))
                       (cons "Changes in a file"
                             (gemini-companion-manual-test-rows 'change))
                       (cons "Keys in the list"
                             (gemini-companion-manual-test-rows 'list))
                       (cons "All changes on one page"
                             (gemini-companion-manual-test-rows 'page))
                       (cons "Keys and menus"
                             (mapcar (lambda (row)
                                       (cons (concat "C-c g " (car row)) (cdr row)))
                                     (gemini-companion-manual-test-rows 'global)))))
    (ert-info (section)
      (let ((described (gemini-companion-manual-test-keys section)))
        (should-not (seq-difference described rows))
        (should-not (seq-difference rows described))))))

(ert-deftest gemini-companion-readme-has-keys-of-the-table-of-commands ()
  (let ((table (gemini-companion-manual-test-rows 'review 'view))
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
            (should (= (seq-count (lambda (key) (= 1 (length key))) keys)
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

(ert-deftest gemini-companion-options-have-version-and-fitting-type ()
  (dolist (option (gemini-companion-manual-test-options))
    (ert-info ((symbol-name option))
      (should (get option 'custom-package-version))
      (should (widget-apply (widget-convert (get option 'custom-type))
                            :match (eval (car (get option 'standard-value)) t)))
      (should (get option 'variable-documentation)))))

;;;; The house

(defun gemini-companion-manual-test-table ()
  "Return the rows of the table of files in design.org.
It is a list of (ROW . FILE), where FILE is a name without its prefix."
  (gemini-companion-manual-test-in "doc/design.org"
    (re-search-forward "^| row | file ")
    (forward-line 2)
    (cl-loop while (looking-at "| +\\([0-9]+\\) | =\\([^=]+\\)=")
             collect (cons (string-to-number (match-string 1)) (match-string 2))
             do (forward-line))))

(defun gemini-companion-manual-test-feature (file)
  "Return the feature of FILE, a name without its prefix."
  (if (equal file "gemini-companion")
      file
    (concat "gemini-companion-" file)))

(defmacro gemini-companion-manual-test-in-each-file (variable &rest body)
  "Evaluate BODY for each file of the package, in a buffer with its text.
VARIABLE is bound to its feature, a string."
  (declare (indent 1) (debug t))
  `(dolist (,variable gemini-companion-manual-test-features)
     (ert-info (,variable)
       (gemini-companion-manual-test-in (concat ,variable ".el")
         (set-syntax-table emacs-lisp-mode-syntax-table)
         ,@body))))

(ert-deftest gemini-companion-files-are-in-the-table-of-the-design ()
  :tags '(pure)
  (should (equal (sort (mapcar (lambda (row)
                                 (gemini-companion-manual-test-feature (cdr row)))
                               (gemini-companion-manual-test-table))
                       #'string<)
                 (sort (copy-sequence gemini-companion-manual-test-features)
                       #'string<))))

(ert-deftest gemini-companion-files-require-only-files-of-lower-rows ()
  :tags '(pure)
  (let ((rows (mapcar (lambda (row)
                        (cons (gemini-companion-manual-test-feature (cdr row))
                              (car row)))
                      (gemini-companion-manual-test-table))))
    (gemini-companion-manual-test-in-each-file file
      (while (re-search-forward "^(require '\\(gemini-companion[a-z-]*\\))$" nil t)
        (ert-info ((match-string 1))
          (should (< (alist-get (match-string 1) rows nil nil #'equal)
                     (alist-get file rows nil nil #'equal))))))))

;; Rows of the table have more than one name of a file.
(ert-deftest gemini-companion-design-names-only-what-exists ()
  :tags '(pure)
  (let ((regexp (format "=\\(\\(?:%s\\)-[a-z-]+\\)="
                        (regexp-opt (mapcar #'cdr
                                            (gemini-companion-manual-test-table)))))
        (unknown nil))
    (gemini-companion-manual-test-in "doc/design.org"
      (while (re-search-forward regexp nil t)
        (let ((name (intern (concat "gemini-companion-" (match-string 1)))))
          (unless (or (fboundp name) (boundp name) (featurep name)
                      (cl-find-class name)
                      ;; Calls between Emacs and the server, and Lisp's own.
                      (save-match-data
                        (intern-soft (match-string 1))))
            (push name unknown)))))
    (should-not unknown)))

(ert-deftest gemini-companion-documents-have-no-wide-lines ()
  :tags '(pure)
  (pcase-dolist (`(,file . ,columns)
                 '(("doc/design.org" . 80) ("doc/conformance.org" . 80)
                   ("doc/emacs-31.org" . 100) ("doc/emacs-bug.org" . 100)
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
  :tags '(pure)
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

(ert-deftest gemini-companion-options-come-before-functions ()
  :tags '(pure)
  (gemini-companion-manual-test-in-each-file file
    (when (re-search-forward
           "^(\\(?:cl-def\\(?:un\\|generic\\|method\\)\\|defun\\|define-[a-z-]+mode\\) " nil t)
      (should-not (re-search-forward "^(def\\(?:custom\\|group\\|face\\) " nil t)))))

(defconst gemini-companion-manual-test-sections
  '(("Customization" . 0) ("Keys" . 1) ("State" . 2) ("Life" . 4)
    ("Commands" . 5))
  "Places of the sections that have the same name in each file.
A section with another name has place 3.")

(ert-deftest gemini-companion-sections-have-one-order ()
  (gemini-companion-manual-test-in-each-file file
    (let ((sections nil))
      (while (re-search-forward "^;;;; \\(.+\\)" nil t)
        (push (match-string 1) sections))
      (setq sections (nreverse sections))
      (should-not (seq-intersection sections '("Faces" "Options" "Command")))
      (should (equal sections
                     (seq-sort-by
                      (lambda (section)
                        (alist-get section gemini-companion-manual-test-sections
                                   3 nil #'equal))
                      #'< sections))))))

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
  (dolist (feature gemini-companion-manual-test-features)
    (ert-info (feature)
      (gemini-companion-manual-test-in (format "test/%s-test.el" feature)
        (should (re-search-forward "^(ert-deftest " nil t))))))

;;; gemini-companion-manual-test.el ends here
