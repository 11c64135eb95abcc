// A completion script made from the commands themselves, so that it never lags behind them.
import type { Command } from 'commander';

export const shells = ['bash', 'zsh'] as const;

/** Undefined for a shell that there is none for. */
export function completionScript(program: Command, shell: string): string | undefined {
  if (shell === 'bash') return bashScript(program);
  // zsh reads bash's completions by a module of its own
  if (shell === 'zsh') return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(program)}`;
  return undefined;
}

function bashScript(program: Command): string {
  const cases = [...everyCommand(program)].map(([path, command]) => {
    const words = [
      ...command.commands.map((sub) => sub.name()),
      ...command.options.flatMap(({ long }) => long ?? []),
      '--help',
    ];
    return `    '${path}') words='${words.join(' ')}' ;;`;
  });
  const [name, own] = [program.name(), `_${program.name()}`];
  return `# bash completion of ${name}
${own}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path='' word words=''
  case $previous in
    --input|--arguments|--result|--config) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
${[...everyCommand(program)]
  .filter(([path]) => path !== '')
  .map(([path]) => `      '${path}') path='${path}' ;;`)
  .join('\n')}
    esac
  done
  case $path in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F ${own} ${name}
`;
}

/** Every command by its path, ` runs list`; the program itself is ''. */
function* everyCommand(command: Command, path = ''): Generator<[string, Command]> {
  yield [path, command];
  for (const sub of command.commands) yield* everyCommand(sub, `${path} ${sub.name()}`);
}
