// Types are tsc's; here is what it cannot see: hooks, promises nobody waits for, and who may do I/O.
import hooks from 'eslint-plugin-react-hooks'
import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'scripts'] },
  {
    files: ['src/**/*.{ts,tsx}'],
    languageOptions: { parser: tseslint.parser },
    plugins: { 'react-hooks': hooks, '@typescript-eslint': tseslint.plugin },
    linterOptions: { reportUnusedDisableDirectives: true },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
    },
  },
  {
    // src/kube is the only place with I/O.
    files: ['src/**/*.{ts,tsx}'],
    ignores: ['src/kube/**'],
    rules: { 'no-restricted-globals': ['error', 'fetch', 'WebSocket', 'XMLHttpRequest', 'EventSource'] },
  },
  {
    // Pages do not import each other.
    files: ['src/pages/*/*.{ts,tsx}'],
    rules: { 'no-restricted-imports': ['error', { patterns: [{ regex: '^\\.\\./(?!\\.\\.)', message: 'pages do not import each other' }] }] },
  },
)
