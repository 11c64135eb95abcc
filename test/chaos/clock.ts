// A preload (`node --import`) that lets a process's clock jump: Date.now() and new Date() are shifted by the
// milliseconds in the file CHAOS_CLOCK, read anew at each SIGUSR2. Timers keep their pace, as they do when an
// operator or NTP sets a real clock. What was read is written beside it, so that a jump is seen to have happened.
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env['CHAOS_CLOCK'];
if (file !== undefined) install(file);

function install(path: string): void {
  const RealDate = Date;
  let shift = 0;
  const now = (): number => RealDate.now() + shift;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
    apply: () => new RealDate(now()).toString(),
    get: (target, name, receiver) =>
      name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown),
  });
  const read = (): void => {
    shift = Number(readFileSync(path, 'utf8'));
    writeFileSync(`${path}.${process.pid}`, String(shift));
  };
  process.on('SIGUSR2', read);
  read();
}
