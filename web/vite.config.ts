/// <reference types="vitest/config" />
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin, type ProxyOptions } from 'vite'
import { parse } from 'yaml'

// `npm run dev` shows the sources with the API of a running console: DANLU_CONSOLE=http://127.0.0.1:PORT npm run dev
const server = process.env.DANLU_CONSOLE ?? 'http://127.0.0.1:8787'

// The console answers only its own origin.
const throughTo = (target: string): ProxyOptions => ({
  target,
  ws: true,
  changeOrigin: true,
  headers: { origin: target },
})

// The kinds' folders speak YAML; it is read when the pages are built, so that no reader of it comes with the first load.
const yaml = (): Plugin => ({
  name: 'yaml',
  transform: (code, id) => (id.endsWith('.yaml') ? { code: `export default ${JSON.stringify(parse(code))}`, map: null } : undefined),
})

export default defineConfig({
  plugins: [yaml(), react()],
  server: {
    fs: { allow: ['..'] }, // the kinds' console.yaml and form.yaml files and the tables of causes lie in ../src/danlu
    proxy: { '/k8s': throughTo(server), '/console': throughTo(server) },
  },
  preview: { proxy: { '/k8s': throughTo(server), '/console': throughTo(server) } },
  build: {
    target: 'es2022',
    outDir: 'dist',
    chunkSizeWarningLimit: 1200,
    modulePreload: { polyfill: false },
    // Few files: each costs a round trip.
    // The Chinese table is one of its own: joined with others it would come with the first load.
    rollupOptions: { output: { experimentalMinChunkSize: 30_000, manualChunks: (id) => (id.endsWith('/tables/chinese.json') ? 'chinese' : undefined) } },
  },
  test: {
    maxWorkers: 2, // by default one on two cores
    onConsoleLog: (log) => !log.includes('React Router Future Flag'),
    projects: [
      { extends: true, test: { name: 'functions', environment: 'node', include: ['src/**/*.test.ts'] } },
      // One browser for all of them: the pages and their library are loaded once for each core, and setup.ts empties it.
      { extends: true, test: { name: 'pages', environment: 'happy-dom', include: ['src/**/*.test.tsx'], setupFiles: ['src/testing/setup.ts'], poolOptions: { forks: { isolate: false } }, testTimeout: 30_000 } },
    ],
  },
})
