#!/bin/sh
# manual.sh: manual pages and shell completions, from the program's own tables.
#
#   sh tools/manual.sh FOLDER PROGRAM...     PROGRAM may have words before it
#
# SPDX-License-Identifier: Apache-2.0
#
# FOLDER gets tether.1, a page for each command (tether-generate.1, ...),
# tether.bash and _tether (zsh). What they say comes from --help=man and
# --help=words (src/cli/ui/manual.c).
set -eu

folder=$1
shift
mkdir -p "$folder"
cells=$(printf '\t')

# The ways of `validate` have tables of their own.
ways='--backend --dump --manifest export check compare'

# ---- pages ---------------------------------------------------------------
"$@" --help=words > "$folder/words"
commands=$(sed -n "s/^command$cells\([^$cells]*\).*/\1/p" "$folder/words")
names() { sed -n "s/^$1$cells\([^$cells]*\).*/\1/p" "$folder/words" | tr '\n' ' '; }

"$@" --help=man > "$folder/tether.1"
for command in $commands; do
    "$@" "$command" --help=man > "$folder/tether-$command.1"
    "$@" "$command" --help=words > "$folder/words.$command"
done
for way in $ways; do
    "$@" validate "$way" --help=man > "$folder/tether-validate-${way#--}.1"
    "$@" validate "$way" --help=words >> "$folder/words.validate"
done
cat "$folder/words.generate" >> "$folder/words.compare"   # it takes them all
for command in validate compare; do
    sort -u -t "$cells" -k 1,1 "$folder/words.$command" > "$folder/words.tmp"
    mv "$folder/words.tmp" "$folder/words.$command"
done

# ---- values ----------------------------------------------------------------
# A line an option that takes one of several words: option, letter, words. They
# are those of the kind with the option's name (--backend), or stand in its row
# (vae|latent).
values() {   # command
    awk -F "$cells" '
    FNR == NR {
        if ($1 != "command") list[$1] = list[$1] (list[$1] ? " " : "") $2
        next
    }
    {
        name = substr($1, 3)
        if (name ~ /^caches?$/) name = "policy"
        words = list[name]
        if (!words && $3 ~ /[|]/ && $3 !~ /[A-Z]/) words = $3
        gsub(/[|]/, " ", words)
        if (words) printf "%s\t%s\t%s\n", $1, $2, words
    }' "$folder/words" "$folder/words.$1"
}

# ---- bash ----------------------------------------------------------------
option_names() {   # command
    awk -F "$cells" '{
        printf " %s", $1
        if ($4 == "switch") printf " --no-%s", substr($1, 3)
    }' "$folder/words.$1"
}

# Its options with values as patterns of a case.
option_values() {   # command
    values "$1" | awk -F "$cells" -v command="$1" '{
        printf "        %s:%s", command, $1
        if ($2 ~ /^-/) printf " | %s:%s", command, $2
        printf ") list=\047%s\047 ;;\n", $3
    }'
}

{
    cat <<END
# bash completion of tether, made by tools/manual.sh from its tables

_tether()
{
    local word=\${COMP_WORDS[COMP_CWORD]} list= before=
    local option=\${COMP_WORDS[COMP_CWORD-1]}
    # --name=word is three words
    if [ "\$option" = = ] && [ "\$COMP_CWORD" -gt 2 ]; then
        option=\${COMP_WORDS[COMP_CWORD-2]}
    elif [ "\$word" = = ]; then
        word=
    fi
    COMPREPLY=()
    if [ "\$COMP_CWORD" -eq 1 ]; then
        list='$(names command)--help --version'
    else
        case \${COMP_WORDS[1]}:\$option in
        validate:validate) list='$ways' ;;
        bench:bench) list='pass ops error' ;;
END
    for command in $commands; do
        option_values "$command"
    done
    cat <<END
        esac
        case \${COMP_WORDS[1]}:\$word in
END
    for command in $commands; do
        list=$(option_names "$command")
        echo "        $command:-*) list='$list --help' ;;"
    done
    cat <<'END'
        esac
    fi
    case $option in   # a list, separated by commas
    --caches) before=${word%"${word##*,}"} ;;
    esac
    # shellcheck disable=SC2207
    COMPREPLY=($(compgen -P "$before" -W "$list" -- "${word#"$before"}"))
}
complete -o default -F _tether tether tether-f64
END
} > "$folder/tether.bash"

# ---- zsh -----------------------------------------------------------------
# Help in brackets, 60 characters of it; [ ] : and quotes are escaped.
arguments() {   # command
    values "$1" > "$folder/words.values"
    awk -F "$cells" '
    FNR == NR { values_of[$1] = $3; next }
    function plain(s) {
        gsub(/\\/, "", s); gsub(/\[/, "\\[", s); gsub(/\]/, "\\]", s)
        gsub(/:/, "\\:", s); gsub(/\047/, "\047\\\047\047", s)
        return s
    }
    function short(s) {
        if (length(s) > 60) { s = substr(s, 1, 60); sub(/ [^ ]*$/, " ...", s) }
        return plain(s)
    }
    function line(name, values) {
        printf " \\\n        \047%s[%s]%s\047", name, short($5), values
    }
    $1 ~ /^--/ {
        what = ""
        if ($1 == "--caches")
            what = "_values -s , policy " values_of[$1]
        else if ($1 in values_of) what = "(" values_of[$1] ")"
        else if ($3 ~ /FILE|FOLDER|DIR/) what = "_files"
        values = ($4 == "maybe" ? "::" : ":") plain($3) ":" what
        if ($4 == "flag" || $4 == "switch") values = ""
        line($1, values)
        if ($2 ~ /^-/) line($2, values)
        if ($4 == "switch") line("--no-" substr($1, 3), "")
    }' "$folder/words.values" "$folder/words.$1"
}

{
    echo '#compdef tether tether-f64'
    echo '# zsh completion of tether, made by tools/manual.sh from its tables'
    echo
    echo '_tether() {'
    echo '    local -a commands'
    echo '    commands=('
    sed -n "s/'/'\\\\''/g; s/:/\\\\:/g
        s/^command$cells\([^$cells]*\)$cells\(.*\)/        '\1:\2'/p" \
        "$folder/words"
    echo '    )'
    echo '    if (( CURRENT == 2 )); then'
    echo '        _describe command commands'
    echo '        return'
    echo '    fi'
    # shellcheck disable=SC2016
    echo '    local command=$words[2]'
    echo '    shift words'
    echo '    (( CURRENT-- ))'
    # shellcheck disable=SC2016
    echo '    case $command in'
    for command in $commands; do
        list=$(arguments "$command")
        printf '    %s)\n        _arguments -S%s \\\n' "$command" "$list"
        echo "        '--help[explain this command]' '*:file:_files' ;;"
    done
    echo '    esac'
    echo '}'
    echo
    # shellcheck disable=SC2016
    echo '_tether "$@"'
} > "$folder/_tether"
rm -f "$folder"/words*
