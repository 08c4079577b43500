/// <reference types="vitest/config" />
import react from '@vitejs/plugin-react'
import { defineConfig, type ProxyOptions } from 'vite'

// `npm run dev` shows the sources with the API of a running console: DANLU_CONSOLE=http://127.0.0.1:PORT npm run dev
const server = process.env.DANLU_CONSOLE ?? 'http://127.0.0.1:8787'

// The console answers only its own origin.
const throughTo = (target: string): ProxyOptions => ({
  target,
  ws: true,
  changeOrigin: true,
  headers: { origin: target },
})

export default defineConfig({
  plugins: [react()],
  server: {
    fs: { allow: ['..'] }, // the kinds' form.yaml files lie in ../src/danlu/kinds
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
    rollupOptions: { output: { experimentalMinChunkSize: 30_000, manualChunks: (id) => (id.endsWith('/why/chinese.ts') ? 'chinese' : undefined) } },
  },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
})
