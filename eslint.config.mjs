// Typed rules, and the fences between the parts (DESIGN §3). A fence names what a folder may import; it
// judges the file that a specifier resolves to, so no spelling of a path gets around it. The list of
// sandbox-safe core files stands here once; test/lint-fence.test.ts holds it against the files' own words.
import { posix, relative, sep } from 'node:path';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Core files that workflow code may import: no node:, no Buffer, no libraries. Paths under src/core. */
const sandboxSafeCore = [
  'approval-key.ts',
  'approval-memo.ts',
  'carried.ts',
  'case-text.ts',
  'case.ts',
  'decision.ts',
  'duration.ts',
  'errors.ts',
  'failures.ts',
  'gate-state.ts',
  'json-value.ts',
  'json.ts',
  'names.ts',
  'position.ts',
  'recording.ts',
  'signal.ts',
  'spec/path.ts',
  'spec/spec.ts',
  'spec/template-syntax.ts',
  'spec/template.ts',
  'verdict.ts',
].map((file) => `src/core/${file}`);

/** Workflow code proper: the sandbox's entry, the package's sandbox door, and the workflows of the tests. */
const sandboxCode = [
  'src/workflows/**/*.ts',
  'src/workflow.ts',
  'test/support/workflows/**/*.ts',
  'bench/workflows/**/*.ts',
];
const sandboxPackages = ['@temporalio/workflow', '@temporalio/common'];
const corePackages = ['zod', 'yaml', 'jose', 'canonicalize', 'ajv/dist/2020.js'];

const fence = {
  meta: {
    type: 'problem',
    schema: [
      {
        type: 'object',
        properties: {
          /** files by their path from the root; one that ends in `/` is a folder */
          files: { type: 'array', items: { type: 'string' } },
          packages: { type: 'array', items: { type: 'string' } },
          node: { type: 'boolean' },
          why: { type: 'string' },
        },
        required: ['files', 'packages', 'why'],
        additionalProperties: false,
      },
    ],
  },
  create(context) {
    const [{ files, packages, node = false, why }] = context.options;
    const from = relative(context.cwd, context.filename).split(sep).join('/');

    const allowed = (specifier) => {
      if (specifier.startsWith('.')) {
        const target = posix.join(posix.dirname(from), specifier);
        return files.some((file) => (file.endsWith('/') ? target.startsWith(file) : target === file));
      }
      return specifier.startsWith('node:') ? node : packages.includes(specifier);
    };
    const check = (source) => {
      if (!source) return;
      const specifier = source.type === 'Literal' ? source.value : undefined;
      if (typeof specifier === 'string' && allowed(specifier)) return;
      context.report({
        node: source,
        message: `${from} may not import ${specifier ?? 'a computed name'}: ${why}`,
      });
    };
    return {
      ImportDeclaration: ({ source }) => check(source),
      ExportNamedDeclaration: ({ source }) => check(source),
      ExportAllDeclaration: ({ source }) => check(source),
      ImportExpression: ({ source }) => check(source),
      TSImportType: ({ source, argument }) => check(source ?? argument?.literal),
      TSExternalModuleReference: ({ expression }) => check(expression),
    };
  },
};

const plugin = { rules: { fence } };

const noLocalActivities = {
  selector: 'Identifier[name="proxyLocalActivities"], ImportSpecifier[imported.name="proxyLocalActivities"]',
  message:
    'Only src/workflows/record.ts may use local activities: with two in flight a history does not replay. Call record().',
};
const noNamespaceOfWorkflow = {
  selector: 'ImportDeclaration[source.value="@temporalio/workflow"] > ImportNamespaceSpecifier',
  message: 'Import the names that are used: a namespace hides what of the sandbox a file needs.',
};
const noExportAll = { selector: 'ExportAllDeclaration', message: 'Name what is exported.' };
const noEnum = {
  selector: 'TSEnumDeclaration',
  message: 'Use a union of literals, or an `as const` object.',
};
const noDefaultExport = { selector: 'ExportDefaultDeclaration', message: 'Use named exports.' };
const shape = [noExportAll, noEnum, noNamespaceOfWorkflow];

/** What the sandbox lacks, and what in it would follow the host instead of the history. */
const notInTheSandbox = [
  'Buffer',
  'process',
  'crypto',
  'fetch',
  'Intl',
  'structuredClone',
  'performance',
  'require',
];
const followsTheHost = [
  'localeCompare',
  'toLocaleString',
  'toLocaleDateString',
  'toLocaleTimeString',
  'toLocaleLowerCase',
  'toLocaleUpperCase',
];
const sandboxGlobals = {
  'no-restricted-globals': [
    'error',
    ...notInTheSandbox.map((name) => ({ name, message: 'The workflow sandbox does not have it.' })),
  ],
  'no-restricted-properties': [
    'error',
    ...followsTheHost.map((property) => ({
      property,
      message: 'It follows the host; compare by code unit.',
    })),
  ],
};

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', '.countersign/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' }, plugins: { countersign: plugin } },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'max-lines': ['error', 400],
      'no-restricted-syntax': ['error', ...shape, noLocalActivities],
      // A floating activity call is an effect that nobody waits for.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', name: ['test', 'it', 'describe', 'suite'], package: 'node:test' },
          ],
        },
      ],
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false },
      ],
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // There is no `this` in this code to lose: functions close over what they need.
      '@typescript-eslint/unbound-method': 'off',
      // Interfaces and fakes are async by contract, not by need.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-console': 'error',
      'no-restricted-syntax': ['error', ...shape, noLocalActivities, noDefaultExport],
    },
  },
  { files: ['src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['src/workflows/record.ts'],
    rules: { 'no-restricted-syntax': ['error', ...shape, noDefaultExport] },
  },
  {
    files: ['src/core/**/*.ts'],
    ignores: sandboxSafeCore,
    rules: {
      'countersign/fence': [
        'error',
        { files: ['src/core/'], packages: corePackages, node: true, why: 'core knows nothing of the rest' },
      ],
    },
  },
  {
    files: sandboxSafeCore,
    rules: {
      ...sandboxGlobals,
      'countersign/fence': [
        'error',
        {
          files: sandboxSafeCore,
          packages: [],
          why: 'a sandbox-safe core file needs nothing but others of its kind',
        },
      ],
    },
  },
  {
    files: sandboxCode,
    rules: {
      ...sandboxGlobals,
      'countersign/fence': [
        'error',
        {
          files: ['src/workflows/', 'src/workflow.ts', ...sandboxSafeCore],
          packages: sandboxPackages,
          why: 'workflow code takes only workflow code, sandbox-safe core files and Temporal’s sandbox packages',
        },
      ],
    },
  },
  {
    files: ['test/support/workflows/**/*.ts'],
    rules: {
      'countersign/fence': [
        'error',
        {
          files: ['src/workflows/', 'src/workflow.ts', 'test/support/workflows/', ...sandboxSafeCore],
          packages: sandboxPackages,
          why: 'workflow code takes only workflow code, sandbox-safe core files and Temporal’s sandbox packages',
        },
      ],
    },
  },
  {
    files: ['bench/workflows/**/*.ts'],
    rules: {
      'countersign/fence': [
        'error',
        {
          files: ['src/workflows/', 'bench/workflows/'],
          packages: sandboxPackages,
          why: 'workflow code takes only workflow code, sandbox-safe core files and Temporal’s sandbox packages',
        },
      ],
    },
  },
  {
    // JSON that a test reads back is asserted on, value by value; its types would only repeat that.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
);
