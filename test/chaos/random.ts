// A seeded source of choices. Everything that a plan leaves to chance comes from here, so that a seed is a plan.

export interface Random {
  /** from 0, below 1 */
  next(): number;
  /** a whole number from `least` to `most` */
  whole(least: number, most: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  /** as likely as its weight; an item of weight 0 is never taken */
  weighted<Item>(items: readonly (readonly [item: Item, weight: number])[]): Item;
  shuffle<Item>(items: readonly Item[]): Item[];
}

/** mulberry32: 32 bits of state are enough for some hundred choices a seed. */
export function createRandom(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  // neighbouring seeds begin alike without these
  for (let index = 0; index < 8; index += 1) next();

  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  const pick = <Item>(items: readonly Item[]): Item => {
    if (items.length === 0) throw new RangeError('there is nothing to pick from');
    return items[whole(0, items.length - 1)] as Item;
  };
  return {
    next,
    whole,
    pick,
    chance: (probability) => next() < probability,
    weighted(items) {
      const total = items.reduce((sum, [, weight]) => sum + weight, 0);
      let left = next() * total;
      for (const [item, weight] of items) {
        left -= weight;
        if (left < 0 && weight > 0) return item;
      }
      throw new RangeError('there is nothing of any weight to pick from');
    },
    shuffle(items) {
      const left = [...items];
      return items.map(() => left.splice(whole(0, left.length - 1), 1)[0] as (typeof items)[number]);
    },
  };
}
