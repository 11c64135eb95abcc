// The plan of a chaos run, as far as the checks read it.
export interface Plan {
  seed: number;
}
